/**
 * The ids of the records of configurations, kept because engines sort the keys of an object without a prototype
 * whenever they are asked for (`update.whole`). Records are frozen, so their ids are what they were.
 */
const idsByRecord = new WeakMap<object, readonly string[]>()

const NONE: readonly string[] = []

/** In document order. */
export function idsOf(record: object | undefined): readonly string[] {
  return record === undefined ? NONE : (idsByRecord.get(record) ?? Object.keys(record))
}

/** Once, for a record that is about to be frozen. */
export function keepIds(record: object, ids: readonly string[]): void {
  idsByRecord.set(record, ids)
}
