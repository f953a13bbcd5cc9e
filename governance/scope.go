package governance

import "fmt"

// An EnvironmentClass says how careful the place is in which an act happens.
type EnvironmentClass string

// The classes of environments.
const (
	Development EnvironmentClass = "dev"
	Staging     EnvironmentClass = "staging"
	Production  EnvironmentClass = "prod"
	Unnamed     EnvironmentClass = ""
)

// A Scope is what is set for the place of an act.
type Scope struct {
	Class EnvironmentClass `cbor:"1,keyasint,omitempty"`
	// HumanApproval: what a rule blocks is put before a person, also where the act names nobody who could approve.
	HumanApproval bool `cbor:"2,keyasint,omitempty"`
}

// Threshold is the magnitude above which an act of high risk is reviewed: the more careful the place, the lower.
func (s Scope) Threshold() Level {
	switch s.Class {
	case Development:
		return 900
	case Staging:
		return 600
	case Production:
		return 300
	}
	return 700
}

// Check refuses a class that does not exist.
func (s Scope) Check() error {
	switch s.Class {
	case Development, Staging, Production, Unnamed:
		return nil
	}
	return fmt.Errorf("context.environment: want %s, %s or %s, got %.40q", Development, Staging, Production,
		string(s.Class))
}
