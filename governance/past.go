package governance

import "strings"

// A Past is what was done within a window before an act, so that rules see one forbidden act that comes as many small
// ones. Whoever makes the act counts it; an act without one is the first. Rules read it as hour.count and so on, with
// the act itself included.
type Past struct {
	Hour    Done  `cbor:"1,keyasint"`           // acts of this action, by who acts
	Day     Done  `cbor:"2,keyasint"`           // the same over 24 hours
	HourAll Done  `cbor:"3,keyasint"`           // everything that is counted of who acts
	DayAll  Done  `cbor:"4,keyasint"`           // the same over 24 hours
	Company Done  `cbor:"5,keyasint"`           // acts of this action in the last hour, by everybody in the company
	DayOf   Done  `cbor:"6,keyasint"`           // everything that is counted of the company over 24 hours
	Refused int64 `cbor:"7,keyasint,omitempty"` // of who acts, denied or put before a person in the last hour
}

// Done is a sum over acts.
type Done struct {
	Count  int64 `cbor:"1,keyasint,omitempty"`
	Amount int64 `cbor:"2,keyasint,omitempty"` // cents
	Risk   int64 `cbor:"3,keyasint,omitempty"` // levels
}

// past returns what of the past an act has.
func (a *Act) past() Past {
	if a.Context.Past == nil {
		return Past{}
	}
	return *a.Context.Past
}

// windowed are the variables about the past. The act that is weighed is part of each count and sum.
var windowed = []Variable{
	number("hour.count", func(f *facts) int64 { return f.act.past().Hour.Count + 1 },
		"how often who acts did this action in the last hour, with this act"),
	number("hour.amount", func(f *facts) int64 { return f.act.past().HourAll.Amount + f.act.Context.Amount },
		"money that who acts committed in the last hour, in cents, with this act"),
	number("hour.risk", func(f *facts) int64 { return f.act.past().HourAll.Risk + int64(f.effect[Risk]) },
		"risk of the acts of who acts in the last hour, summed, with this act"),
	number("hour.refused", func(f *facts) int64 { return f.act.past().Refused },
		"acts of who acts that a rule stopped in the last hour"),
	number("hour.company_count", func(f *facts) int64 { return f.act.past().Company.Count + 1 },
		"how often the company did this action in the last hour, with this act"),
	number("day.count", func(f *facts) int64 { return f.act.past().Day.Count + 1 },
		"how often who acts did this action in the last 24 hours, with this act"),
	number("day.amount", func(f *facts) int64 { return f.act.past().DayAll.Amount + f.act.Context.Amount },
		"money that who acts committed in the last 24 hours, in cents, with this act"),
	number("day.company_amount", func(f *facts) int64 { return f.act.past().DayOf.Amount + f.act.Context.Amount },
		"money that the company committed in the last 24 hours, in cents, with this act"),
}

// Windowed reports whether a variable is about the past.
func Windowed(variable string) bool {
	return strings.HasPrefix(variable, "hour.") || strings.HasPrefix(variable, "day.")
}

// ReadsPast reports whether a rule reads a variable about the past: only then are acts counted.
func (g *Gate) ReadsPast() bool {
	for i := range g.rules {
		for _, v := range g.rules[i].reads {
			if Windowed(v) {
				return true
			}
		}
	}
	return false
}
