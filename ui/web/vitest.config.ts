import { defineConfig } from 'vitest/config'

// No test leaves anything behind for another file: all run in one worker's world, which takes half of the processor's time.
export default defineConfig({ test: { environment: 'node', isolate: false, include: ['src/**/*.test.{ts,tsx}'], testTimeout: 20_000 } })
