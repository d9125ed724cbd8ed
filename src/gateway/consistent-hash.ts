import type { Upstream } from './upstream.ts'

/**
 * The upstream that a key belongs to, by weighted rendezvous hashing: each scores the key on its own and the highest
 * score wins. So when one leaves, only its keys move, to where they go back from when an upstream with its id returns;
 * shares follow the weights exactly, without a ring to rebuild. One pass, no allocation. `candidates` is not empty.
 */
export function ownerOf(key: string, candidates: readonly Upstream[], nowMs: number): Upstream | undefined {
  const keyHash = hash32(key, 0)
  let owner: Upstream | undefined
  let best = Number.NEGATIVE_INFINITY
  for (const candidate of candidates) {
    // Uniform in (0, 1); -weight / ln(u) is the larger the heavier, and its maximum falls to each by its weight.
    const uniform = (hash32(candidate.id, keyHash) + 0.5) / 2 ** 32
    const score = candidate.weightAt(nowMs) / -Math.log(uniform)
    if (score > best || (score === best && owner !== undefined && candidate.id < owner.id)) {
      best = score
      owner = candidate
    }
  }
  return owner
}

/** 32 well mixed bits of a text: FNV-1a over UTF-16 units, then an avalanche. Not for secrets. */
function hash32(text: string, seed: number): number {
  let hash = (0x811c9dc5 ^ seed) | 0
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
