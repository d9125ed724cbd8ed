import { describe, expect, it } from 'vitest'
import {
  AdmissionConfigError,
  AdmissionConflictError,
  AdmissionStateError,
  UnsupportedTransitionError,
} from '../src/errors.ts'

const issues = (count: number): { pointer: string; message: string }[] =>
  Array.from({ length: count }, (_, index) => ({ pointer: `/contracts/${index}`, message: 'is wrong' }))

describe('errors', () => {
  it('API-5 are errors with a name and a code of their own', () => {
    const errors = [
      new AdmissionConfigError([]),
      new AdmissionStateError('enable', 'enabled'),
      new AdmissionConflictError(6, 7),
      new UnsupportedTransitionError([]),
    ]
    for (const error of errors) expect(error).toBeInstanceOf(Error)
    expect(errors.map((error) => error.name)).toEqual([
      'AdmissionConfigError',
      'AdmissionStateError',
      'AdmissionConflictError',
      'UnsupportedTransitionError',
    ])
    expect(new Set(errors.map((error) => error.code)).size).toBe(4)
  })

  it('CFG-1 a configuration error carries every issue and shows the first five', () => {
    const error = new AdmissionConfigError(issues(7))
    expect(error.issues).toHaveLength(7)
    expect(error.message).toContain('/contracts/4: is wrong')
    expect(error.message).not.toContain('/contracts/5')
    expect(error.message).toContain('(+2 more)')
  })

  it('CFG-1 an issue with the whole document is shown as such', () => {
    const error = new AdmissionConfigError([{ pointer: '', message: 'must be an object' }])
    expect(error.message).toBe('Invalid admission configuration: (document): must be an object')
  })

  it('PUB-4 a conflict carries the expected and the actual generation', () => {
    const error = new AdmissionConflictError(6, 7)
    expect([error.expected, error.actual]).toEqual([6, 7])
    expect(error.message).toBe('Cannot publish: prepared from generation 6, but 7 is current')
  })

  it('PUB-1 a state error names the action and the state', () => {
    const error = new AdmissionStateError('update', 'disabled')
    expect([error.action, error.state]).toEqual(['update', 'disabled'])
    expect(error.message).toBe('Cannot update: admission is disabled')
  })

  it('PUB-9 an unsupported transition carries every path', () => {
    const paths = ['/global/rate', '/a', '/b', '/c', '/d', '/e']
    const error = new UnsupportedTransitionError(paths)
    expect(error.paths).toEqual(paths)
    expect(error.message).toContain('/global/rate')
    expect(error.message).toMatch(/…$/)
  })
})
