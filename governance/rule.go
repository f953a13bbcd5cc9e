package governance

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"
)

// A Branch is one of the three powers.
type Branch string

// The branches. What a rule may read depends on its branch: see [Variables].
const (
	// Legislative rules set bounds. They are the same for everybody: they do not see who acts.
	Legislative Branch = "legislative"
	// Executive rules give permissions and clearance. They alone see agent, role and rank.
	Executive Branch = "executive"
	// Judicial rules review an act by its effect and its record, whoever acts.
	Judicial Branch = "judicial"
)

// Branches lists them in the order in which they form their opinions.
var Branches = []Branch{Legislative, Executive, Judicial}

// A Severity says what it means that a rule speaks.
type Severity string

// The severities, from the mildest.
const (
	Advisory Severity = "advisory" // it is noted
	Warning  Severity = "warning"  // the act is permitted with a warning
	Blocking Severity = "blocking" // a person has to approve; with nobody to ask the act is denied
	Critical Severity = "critical" // the act is denied, whoever would approve it
)

// Severities lists them from the mildest.
var Severities = []Severity{Advisory, Warning, Blocking, Critical}

// A Verdict is what an opinion or a decision comes to.
type Verdict int

// The verdicts, from the mildest. Do not reorder.
const (
	Permit Verdict = iota
	Warn           // permitted, with a warning
	Defer          // a person has to approve
	Deny
)

// String returns the word of the kernel's API: what is deferred is escalated to a person, and a warning permits.
func (v Verdict) String() string { return [...]string{"permit", "warn", "escalate", "deny"}[v] }

// A Rule is one sentence of the constitution. It speaks when it is about the action and its predicate is true.
type Rule struct {
	ID       string   `cbor:"1,keyasint" json:"id"`
	Title    string   `cbor:"2,keyasint,omitempty" json:"title"`
	Branch   Branch   `cbor:"3,keyasint" json:"branch"`
	Severity Severity `cbor:"4,keyasint" json:"severity"`
	On       []string `cbor:"5,keyasint,omitempty" json:"on"` // actions and classes that it is about; none: all
	When     string   `cbor:"6,keyasint" json:"when"`         // predicate in CEL
	// told when it speaks; "{act}" stands for the action's title
	Reason    string `cbor:"7,keyasint" json:"reason"`
	Reference string `cbor:"8,keyasint,omitempty" json:"reference"` // where the rule comes from
}

var idForm = regexp.MustCompile(`^[A-Z][A-Z0-9]*(-[A-Z0-9]+)*$`)

// Check reports what is wrong with a rule apart from its predicate.
func (r Rule) Check() error {
	switch {
	case !idForm.MatchString(r.ID) || len(r.ID) > 64:
		return fmt.Errorf("rule %.64q: id: want capital letters, digits and hyphens, at most 64, such as GOV-001", r.ID)
	case !slices.Contains(Branches, r.Branch):
		return fmt.Errorf("rule %s: branch: want one of %v, got %.40q", r.ID, Branches, string(r.Branch))
	case !slices.Contains(Severities, r.Severity):
		return fmt.Errorf("rule %s: severity: want one of %v, got %.40q", r.ID, Severities, string(r.Severity))
	case r.When == "" || len(r.When) > MaxPredicate:
		return fmt.Errorf("rule %s: when: required, at most %d bytes", r.ID, MaxPredicate)
	case r.Reason == "":
		return fmt.Errorf("rule %s: reason: required", r.ID)
	case len(r.On) > MaxOn:
		return fmt.Errorf("rule %s: on: at most %d actions and classes", r.ID, MaxOn)
	}
	for _, s := range append([]string{r.Title, r.Reason, r.Reference}, r.On...) {
		if len(s) > MaxReason || !utf8.ValidString(s) {
			return fmt.Errorf("rule %s: title, on, reason and reference must be UTF-8 of at most %d bytes each", r.ID, MaxReason)
		}
	}
	return nil
}
