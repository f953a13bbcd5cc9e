import { expect, test } from 'vitest'
import { blanksOf, blankValues, routineOf } from './form'
import { inWords } from './words'

test.each([
  ['* * * * *', 'every minute'], ['*/15 * * * *', 'every 15 minutes'], ['5 * * * *', 'every hour at :05'], ['30 */6 * * *', 'every 6 hours at :30'],
  ['30 9 * * *', 'every day at 09:30'], ['0 9,17 * * *', 'every day at 09:00 and 17:00'], ['0 9 * * 1-5', 'every weekday at 09:00'], ['0 9 * * mon-fri', 'every weekday at 09:00'],
  ['0 9 * * 1,4', 'every Monday and Thursday at 09:00'], ['0 9 * * 6,7', 'every Saturday and Sunday at 09:00'], ['0 0 1 * *', 'on day 1 of every month at 00:00'],
  ['0 0 1,15 1 *', 'on day 1 and 15 of January at 00:00'], ['0 8 * dec 1', 'every Monday in December at 08:00'],
])('%s is %s', (cron, said) => expect(inWords(cron)).toBe(said))

test.each(['', 'soon', '0 9 13 * 5', '0 9 * * 1/2', '1-59/7 * * * *', '0 9 * * */2', '0 0-23 * * *'])('%s is not put into words', (cron) => expect(inWords(cron)).toBeUndefined())

test('blanks of a routine have a default each, and keep what else is known of them', () => {
  expect(blanksOf('Report of {{week}} and {{ week }}', '{{date}} {{who}} {{9}}')).toEqual(['week', 'who'])
  expect(routineOf({ title: '{{week}}', 'blank.week': 'now' }, { title: '{{week}}', 'blank.week': 'now' })).toEqual({ title: '{{week}}', variables: [{ name: 'week', defaultValue: 'now' }] })
  const known = [{ name: 'n', label: 'How many', type: 'number', required: true, options: [], defaultValue: 3 }]
  expect(blankValues(known)).toEqual({ 'blank.n': '3' })
  expect(routineOf({ title: 'Now {{n}}' }, { title: 'Now {{n}}', 'blank.n': '3' }, known)).toEqual({ title: 'Now {{n}}', variables: known })
  expect(routineOf({ priority: 'high' }, { title: '{{n}}', priority: 'high' }, known)).toEqual({ priority: 'high' })
})
