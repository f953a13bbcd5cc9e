import { expect, test } from 'vitest'
import { changesOfLabels } from './labels'

test('labels are set, changed and taken away, and what stays is not sent', () => {
  expect(changesOfLabels('zone=east\nrack=3\ngpu', 'zone=west\n rack = 3 \nfast=yes=no\n')).toEqual({ zone: 'west', fast: 'yes=no', gpu: null })
  expect(changesOfLabels('zone=east', 'zone=east\n')).toEqual({})
})
