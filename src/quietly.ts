/** Calls what may fail without harm, now or later: whatever it throws is dropped. */
export async function quietly(fn: () => unknown): Promise<void> {
  try {
    await fn()
  } catch {}
}
