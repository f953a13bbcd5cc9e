package governance

import (
	"slices"
	"strings"
)

// A Pack is a set of rules to start from, and the environment that goes with it.
type Pack struct {
	Name        string
	About       string
	Environment EnvironmentClass // of the mesh
	Rules       []Rule
	// Added: it comes beside the pack that is in force, and changes neither that nor the environment.
	Added bool
}

const packReference = "pack "

// Packs lists the packs to start from, from the mildest, and then those that come beside them.
func Packs() []Pack {
	return append([]Pack{
		{Name: "relaxed", Environment: Development,
			About: "The genesis rules alone, with the threshold of development. For a mesh of your own."},
		{Name: "standard", Environment: Unnamed, Rules: inPack("standard", standardRules()),
			About: "What can not be undone, large amounts of money and new rights of agents wait for a person. " +
				"For most companies."},
		{Name: "strict", Environment: Production, Rules: inPack("strict", slices.Concat(standardRules(), strictRules())),
			About: "Also what takes data out, new agents, skills and settings wait for a person, and the " +
				"threshold is that of production."},
	}, agentic()...)
}

// PackOf returns a pack by name.
func PackOf(name string) (Pack, bool) {
	for _, p := range Packs() {
		if p.Name == name {
			return p, true
		}
	}
	return Pack{}, false
}

// ChangeTo returns the change that brings rules to a pack: the rules of other packs go, its own come, and those that
// were added otherwise stay. A pack that comes beside others only adds its own.
func (p Pack) ChangeTo(rules []Rule) Change {
	ch := Change{}
	for _, r := range rules {
		if !p.Added && strings.HasPrefix(r.Reference, packReference) && indexOf(p.Rules, r.ID) < 0 {
			ch.Drop = append(ch.Drop, r.ID)
		}
	}
	for _, r := range p.Rules {
		if i := indexOf(rules, r.ID); i < 0 || !equal(rules[i], r) {
			ch.Put = append(ch.Put, r)
		}
	}
	return ch
}

func equal(a, b Rule) bool {
	on := slices.Equal(a.On, b.On)
	a.On, b.On = nil, nil
	return on && a.ID == b.ID && a.Title == b.Title && a.Branch == b.Branch && a.Severity == b.Severity &&
		a.When == b.When && a.Reason == b.Reason && a.Reference == b.Reference
}

func inPack(name string, rules []Rule) []Rule {
	for i := range rules {
		rules[i].Reference = packReference + name
	}
	return rules
}

func standardRules() []Rule {
	return []Rule{
		{ID: "STD-001", Title: "what can not be undone", Branch: Judicial, Severity: Blocking,
			When:   `context.irreversible && effect.risk >= 400 && !("approved" in clearances)`,
			Reason: "{act} can not be undone: a person has to approve it"},
		{ID: "STD-002", Title: "large amounts", Branch: Legislative, Severity: Blocking, On: []string{string(Money)},
			When:   `context.amount >= 100000 && !("purchase-order" in clearances)`,
			Reason: "{act} commits $1,000 or more: a person has to approve it"},
		{ID: "STD-003", Title: "rights", Branch: Executive, Severity: Blocking, On: []string{string(Elevate)},
			When:   `rank != "board"`,
			Reason: "{act} gives rights: a person has to approve it"},
		{ID: "STD-004", Title: "secrets leave nothing", Branch: Legislative, Severity: Critical,
			When:   `context.outside && context.data == "secret"`,
			Reason: "{act} takes a secret out of the company"},
	}
}

func strictRules() []Rule {
	return []Rule{
		{ID: "STR-001", Title: "new agents", Branch: Executive, Severity: Blocking, On: []string{string(Spawn)},
			When:   `rank != "board"`,
			Reason: "{act}: a person has to approve it"},
		{ID: "STR-002", Title: "skills and apps", Branch: Executive, Severity: Blocking, On: []string{string(Install)},
			When:   `rank != "board" && !("scan" in clearances)`,
			Reason: "{act} brings code that no scan has seen: a person has to approve it"},
		{ID: "STR-003", Title: "settings", Branch: Executive, Severity: Blocking, On: []string{string(Configure)},
			When:   `rank == "worker"`,
			Reason: "{act} changes settings: a manager or a person has to do it"},
		{ID: "STR-004", Title: "data goes out", Branch: Legislative, Severity: Blocking,
			On:     []string{string(Egress), string(Message), string(Model)},
			When:   `context.outside && context.data in ["personal", "human-subjects"]`,
			Reason: "{act} takes data of people out of the company"},
		{ID: "STR-005", Title: "removal of files", Branch: Legislative, Severity: Blocking, On: []string{string(Remove)},
			When:   `!context.inside`,
			Reason: "{act} is not inside the agent's workspace"},
	}
}
