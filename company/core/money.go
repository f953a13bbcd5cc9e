package core

import (
	"math"
	"strconv"
)

// Money is an amount in micro-cents, 1,000,000 to a cent, so that a single token can have a
// price. The API shows whole cents, rounded half up; limits compare micro-cents.
type Money int64

// Cent is one cent.
const Cent Money = 1_000_000

// MaxMoney is the value at which sums stop, far above any budget (about 92 billion dollars),
// so that a flood of events can not overflow a total into a credit.
const MaxMoney = Money(math.MaxInt64)

// Cents returns n whole cents, at most MaxMoney.
func Cents(n int64) Money {
	if n > int64(MaxMoney/Cent) {
		return MaxMoney
	}
	return Money(n) * Cent
}

// Cents returns m in whole cents, rounded half up.
func (m Money) Cents() int64 {
	whole, rest := m/Cent, m%Cent
	if rest < 0 { // round down first, as floor does
		whole, rest = whole-1, rest+Cent
	}
	if rest >= Cent/2 {
		whole++
	}
	return int64(whole)
}

// Plus returns m+n, at most MaxMoney. Neither may be negative.
func (m Money) Plus(n Money) Money {
	if n > MaxMoney-m {
		return MaxMoney
	}
	return m + n
}

// MarshalJSON writes whole cents.
func (m Money) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, m.Cents(), 10), nil }

// Percent returns m as hundredths of a percent of limit, rounded half up, or
// zero when there is no limit.
func (m Money) Percent(limit Money) Percent {
	if limit <= 0 {
		return 0
	}
	// Halve both until the sum fits; the error is far below the rounding.
	for m > MaxMoney/40_000 || limit > MaxMoney/4 {
		m, limit = m/2, max(limit/2, 1)
	}
	return Percent((m*20_000 + limit) / (limit * 2))
}

// Reaches reports whether m is at least percent of limit. It is exact.
func (m Money) Reaches(limit Money, percent int64) bool {
	// m >= limit*percent/100, with limit split so that nothing overflows.
	return m >= limit/100*Money(percent)+(limit%100*Money(percent)+99)/100
}

// A Percent is in hundredths of a percent; JSON shows it as a number with at
// most two decimals.
type Percent int64

// MarshalJSON writes for example 82, 0.16 or 1.5.
func (p Percent) MarshalJSON() ([]byte, error) {
	b := strconv.AppendInt(nil, int64(p/100), 10)
	switch rest := p % 100; {
	case rest == 0:
	case rest%10 == 0:
		b = append(b, '.', byte('0'+rest/10))
	default:
		b = append(b, '.', byte('0'+rest/10), byte('0'+rest%10))
	}
	return b, nil
}

// MaxEventCents bounds one cost (ten million dollars), so that a typing error is refused and
// sums do not overflow.
const MaxEventCents = 1_000_000_000
