/** Calls a hook, at once: whatever it throws, now or later, is dropped, for it must change nothing and fail nobody (ADX-6). */
export async function quietly(fn: () => unknown): Promise<void> {
  try {
    await fn()
  } catch {}
}
