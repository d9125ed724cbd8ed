import { defineConfig } from 'vitest/config'

const config: ReturnType<typeof defineConfig> = defineConfig({
  test: { include: ['test/**/*.test.ts'], testTimeout: 20_000 },
})
export default config
