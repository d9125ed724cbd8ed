export type { Refusal, RefusalReason } from '../refusal.ts'
export { refusal } from '../refusal.ts'
