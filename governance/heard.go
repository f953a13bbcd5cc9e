package governance

import "slices"

// Branches of what speaks beside the rules. No rule belongs to them.
const (
	// Filtering is the opinion of the filters that a company has chosen, see package filters.
	Filtering Branch = "filters"
	// Accessing is the access policy of the resource tree, for the target of the act.
	Accessing Branch = "access"
)

// Heard returns the decision with the opinion of something beside the rules, which was asked under these names. Like a
// branch, it can make the decision stricter and never milder.
func (d Decision) Heard(b Branch, asked []string, spoken ...Voice) Decision {
	o := Opinion{Branch: b, Evaluated: asked, Spoken: spoken}
	for _, v := range spoken {
		o.Verdict = max(o.Verdict, v.Verdict)
		if v.Verdict > d.Verdict || d.Reason == "" {
			d.Verdict, d.Reason = max(d.Verdict, v.Verdict), v.Reason
		}
	}
	d.Opinions = append(slices.Clip(d.Opinions), o)
	return d
}

// Lifted is what it means that something beside the rules wants a person to approve an act: as for a rule that blocks.
func Lifted(a Act) Verdict {
	r := compiledRule{Rule: Rule{Severity: Blocking}}
	return r.verdict(&a)
}
