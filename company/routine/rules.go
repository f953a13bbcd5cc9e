package routine

import (
	"encoding/base64"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Rules are the commands and hooks that this package adds to the kernel.
var Rules = company.Rules{
	Kinds:  slices.Concat(routineKinds, folderKinds),
	Causes: causes,
	Forget: map[string]func(tx *ledger.Tx, id string, row []byte){
		"routine-trigger": func(tx *ledger.Tx, _ string, row []byte) {
			for _, key := range triggerKeys(core.DecodeRow[RoutineTrigger](row)) {
				tx.Delete(key)
			}
		},
	},
	IssueStored: func(tx *ledger.Tx, was, next entity.Issue) entity.Issue {
		settleRoutineIssue(tx, was, next)
		return next
	},
	Gone:     gone,
	Routines: origins{},
	Sealed: func(tx *ledger.Tx, company ledger.CompanyID) (out []conceal.SealedConfig) {
		for _, r := range Routines.All(tx, company) {
			o := conceal.SealedConfig{Type: "routine", ID: r.ID, Owner: r.ID}
			o.Collect("env", r.Env)
			for _, v := range RoutineRevisions(tx, r) {
				o.Collect("env", v.Routine.Env)
			}
			out = append(out, o)
		}
		for _, t := range RoutineTriggers.All(tx, company) {
			if len(t.Sealed) > 0 {
				out = append(out, conceal.SealedConfig{Type: "routine_trigger", ID: t.ID, Owner: t.ID,
					Values: []conceal.SealedValue{{Path: "", Sealed: base64.StdEncoding.EncodeToString(t.Sealed)}}})
			}
		}
		return out
	},
	Reseal: map[string]func(c *ledger.Context, p conceal.Reseal) error{"routine": resealRoutine,
		"routine_trigger": resealTrigger},
	Envs: func(tx *ledger.Tx, company ledger.CompanyID) (out []company.EnvUse) {
		for _, r := range Routines.All(tx, company) {
			out = append(out, r.envUse())
		}
		return out
	},
}

// Sealed seals the variables of a routine.
func (s SaveRoutine) Sealed(seal conceal.SealFunc) (any, error) {
	var err error
	s.Env, err = conceal.SealEnv(s.Env, s.ID, seal)
	return s, err
}

// origins implements the hook by which the kernel asks about routines.
type origins struct{}

func (origins) Env(tx *ledger.Tx, i entity.Issue) (company.EnvUse, bool) {
	if i.OriginKind != entity.OriginRoutine || !core.IsID(i.OriginID) {
		return company.EnvUse{}, false
	}
	r, ok := Routines.Get(tx, i.Company, i.OriginID)
	return r.envUse(), ok
}

func (origins) Description(tx *ledger.Tx, company ledger.CompanyID, id string) (company.Description, bool) {
	r, ok := Routines.Get(tx, company, id)
	return r.Described(), ok
}

func (origins) DescriptionAt(tx *ledger.Tx, companyID ledger.CompanyID, id, revision string,
	number uint64) (version uint64, text string, ok bool) {
	r, _ := Routines.Get(tx, companyID, id)
	is := func(of Routine) bool {
		return company.DocumentOfRoutine(r.ID, of.TextVersion) == revision && of.TextVersion == number
	}
	if is(r) {
		return r.TextVersion, string(r.Description), true
	}
	for _, v := range RoutineRevisions(tx, r) {
		if is(v.Routine) || v.ID == revision && v.Number == number {
			return v.Routine.TextVersion, string(v.Routine.Description), true
		}
	}
	return 0, "", false
}

// Described returns the description as a text on which comments can be made.
func (r Routine) Described() company.Description {
	return company.Description{Company: r.Company, Routine: r.ID, Version: r.TextVersion, At: r.TextAt}
}

func (r Routine) envUse() company.EnvUse {
	return company.EnvUse{Env: r.Env, Of: conceal.SecretTarget{Type: "routine", ID: r.ID, Label: r.Title,
		Href: "/routines/" + r.ID, Status: string(r.Status)}, At: r.UpdatedAt}
}

func resealRoutine(c *ledger.Context, p conceal.Reseal) error {
	ro, ok := Routines.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return errNoRoutine()
	}
	ro.Env = p.Config(ro.Env)
	Routines.Put(c.Tx, ro.Company, ro.ID, ro)
	for _, v := range RoutineRevisions(c.Tx, ro) { // at most keptRoutineRevisions
		v.Routine.Env = p.Config(v.Routine.Env)
		routineRevisions.Put(c.Tx, ro.Company, ro.ID+"."+ledger.Order(v.Number), v)
	}
	return nil
}

func resealTrigger(c *ledger.Context, p conceal.Reseal) error {
	t, ok := RoutineTriggers.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok || base64.StdEncoding.EncodeToString(t.Sealed) != p.Old[0] {
		return ledger.Refuse(ledger.NotFound, nil, "Routine trigger not found")
	}
	var err error
	if t.Sealed, err = p.Sealed(); err == nil {
		RoutineTriggers.Put(c.Tx, c.Cmd.Company, t.ID, t)
	}
	return err
}
