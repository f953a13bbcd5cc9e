package app

import (
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// Install is the payload of app.install.
type Install struct {
	ID      string  `cbor:"1,keyasint"`
	Name    string  `cbor:"2,keyasint"`
	Release Release `cbor:"3,keyasint"`
	Steps   []Step  `cbor:"4,keyasint"`
	Start   bool    `cbor:"5,keyasint,omitempty"`
}

// Upgrade is the payload of app.upgrade. Back are the steps that take it back.
type Upgrade struct {
	ID        string  `cbor:"1,keyasint"`
	From      string  `cbor:"2,keyasint"` // digest of the release that the steps were planned for
	Release   Release `cbor:"3,keyasint"`
	Steps     []Step  `cbor:"4,keyasint"`
	Back      []Step  `cbor:"5,keyasint"`
	Older     bool    `cbor:"6,keyasint,omitempty"` // also to an older version, or the same
	NewSigner bool    `cbor:"7,keyasint,omitempty"` // also if somebody else signed it
	Before    []Part  `cbor:"8,keyasint,omitempty"` // what belongs to the app after the way back
}

// Change is the payload of app.start, app.stop and app.remove, whose steps were planned for a release, and of
// app.rollback and app.settle, which have none.
type Change struct {
	ID    string `cbor:"1,keyasint"`
	From  string `cbor:"2,keyasint,omitempty"`
	Steps []Step `cbor:"3,keyasint,omitempty"`
}

const (
	KindInstall  = "app.install"
	KindUpgrade  = "app.upgrade"
	KindStart    = "app.start"
	KindStop     = "app.stop"
	KindRollback = "app.rollback"
	KindSettle   = "app.settle"
	KindRemove   = "app.remove"
	KindCall     = "app.call"
)

// Rules are the rules of this room.
var Rules = company.Rules{Kinds: []company.Kind{
	{Name: KindInstall, From: company.FromBoard, Traits: company.LeadersOnly | company.EndsKeys,
		Weight: company.Weights.Installing, Do: ledger.Typed(install)},
	{Name: KindUpgrade, From: company.FromBoard, Traits: company.LeadersOnly | company.EndsKeys,
		Weight: company.Weights.Installing, Do: ledger.Typed(upgrade)},
	{Name: KindStart, From: company.FromBoard, Traits: company.LeadersOnly | company.EndsKeys,
		Weight: company.Weights.Execute, Do: ledger.Typed(start)},
	{Name: KindStop, From: company.FromBoard, Traits: company.LeadersOnly | company.EndsKeys,
		Weight: company.Weights.Halting, Do: ledger.Typed(stop)},
	{Name: KindRollback, From: company.FromBoard, Traits: company.LeadersOnly | company.EndsKeys,
		Weight: company.Weights.Installing, Do: ledger.Typed(rollback)},
	{Name: KindSettle, From: company.FromNode, Traits: company.EndsKeys, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(settle)},
	{Name: KindRemove, From: company.FromBoard, Traits: company.LeadersOnly | company.EndsKeys,
		Weight: company.Weights.Removing, Do: ledger.Typed(remove)},
	{Name: KindCall, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Execute, Do: ledger.Typed(call)},
}, Forget: map[string]func(tx *ledger.Tx, id string, row []byte){
	"app": func(tx *ledger.Tx, _ string, row []byte) {
		a := core.DecodeRow[App](row)
		for _, s := range a.Now.Services {
			company.Ask.Processes.ForgetProcess(tx, s.process(a).Name)
			company.Ask.Services.ForgetService(tx, a.Company, a.Name+"/"+s.Name)
		}
	},
	"app_hook": func(tx *ledger.Tx, _ string, row []byte) {
		company.Ask.Processes.ForgetProcess(tx, core.DecodeRow[Hook](row).process())
	},
}}

func install(c *ledger.Context, p Install) (any, error) {
	of, now := c.Cmd.Company, core.TimeOf(c.Now)
	if _, err := company.Present(c); err != nil {
		return nil, err
	}
	if !IsName(p.Name) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "name: small letters, digits, - and _, at most 64")
	}
	if _, taken := Rows.Get(c.Tx, of, p.ID); taken || !core.IsID(p.ID) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "ID %q is in use, or not a UUID", p.ID)
	}
	if was, ok := Named(c.Tx, of, p.Name); ok {
		return nil, ledger.Refuse(ledger.Conflict, nil,
			"The app %s is installed in version %s; upgrade it, or remove it first", p.Name, was.Now.Version)
	}
	if err := core.HasRoom(Rows.All(c.Tx, of), MaxApps, "apps"); err != nil {
		return nil, err
	}
	if err := p.Release.check(); err != nil {
		return nil, err
	}
	if err := p.Release.checkNeeds(c.Tx, of); err != nil {
		return nil, err
	}
	if err := carryOut(c, p.Steps, c.Cmd.Actor.ID); err != nil {
		return nil, err
	}
	a := App{ID: p.ID, Company: of, Name: p.Name, State: Installed, Now: p.Release, CreatedAt: now}
	events := []Event{OnInstall}
	if p.Start {
		a.State = Running
		events = append(events, OnStart)
	}
	if err := provide(c, nil, &a); err != nil {
		return nil, err
	}
	if err := ask(c, a, a.Now, events...); err != nil {
		return nil, err
	}
	return a.store(c, "app.installed")
}

func errMoved(a App) error {
	return ledger.Refuse(ledger.Conflict, nil, "The app %s has changed since this was planned; try again", a.Name)
}

func upgrade(c *ledger.Context, p Upgrade) (any, error) {
	a, err := present(c, p.ID)
	if err != nil {
		return nil, err
	}
	if err := p.Release.check(); err != nil {
		return nil, err
	}
	switch {
	case p.From != a.Now.Digest:
		return nil, errMoved(a)
	case !p.Older && compareVersions(p.Release.Version, a.Now.Version) <= 0:
		return nil, ledger.Refuse(ledger.Unprocessable, nil,
			"version: %s is installed, and %s is not newer; pass --rollback to go back", a.Now.Version, p.Release.Version)
	case !p.NewSigner && p.Release.Signer != a.Now.Signer:
		return nil, ledger.Refuse(ledger.Forbidden, nil,
			"signer: version %s was signed with key %.16s, and this one with %.16s; pass --new-signer to trust it",
			a.Now.Version, a.Now.Signer, p.Release.Signer)
	case len(p.Back) > MaxSteps:
		return nil, ledger.Refuse(ledger.TooLarge, nil, "the way back has more than %d steps", MaxSteps)
	}
	if err := p.Release.checkNeeds(c.Tx, a.Company); err != nil {
		return nil, err
	}
	for other := range All(c.Tx, a.Company) {
		for _, n := range other.Now.Needs {
			if fits, err := Satisfies(p.Release.Version, n.Range); n.App == a.Name && (err != nil || !fits) {
				return nil, ledger.Refuse(ledger.Unprocessable, nil, "version: %s needs %s %s", other.Name, a.Name, n.Range)
			}
		}
	}
	if err := carryOut(c, p.Steps, c.Cmd.Actor.ID); err != nil {
		return nil, err
	}
	was, now, events := a, core.TimeOf(c.Now), []Event{OnUpgrade}
	before := a.Now
	before.Parts = p.Before
	if err := before.check(); err != nil {
		return nil, err
	}
	a.Back = &Back{Release: before, Steps: p.Back, By: c.Cmd.Actor.ID, Since: now}
	if a.State == Running {
		a.Back.Until = now + p.Release.Within
		events = append(events, OnHealth)
	}
	if p.Release.Within == 0 {
		a.Back.Until = 0
	}
	a.Now, a.Reason = p.Release, ""
	if err := provide(c, &was, &a); err != nil {
		return nil, err
	}
	cancel(c, was, OnUpgrade, OnHealth) // those of an earlier upgrade decide nothing any more
	if err := ask(c, a, a.Now, events...); err != nil {
		return nil, err
	}
	return a.store(c, "app.upgraded")
}

// move carries steps out that were planned for the release in use.
func move(c *ledger.Context, p Change) (App, error) {
	a, err := present(c, p.ID)
	if err == nil && p.From != a.Now.Digest {
		err = errMoved(a)
	}
	if err == nil {
		err = carryOut(c, p.Steps, c.Cmd.Actor.ID)
	}
	return a, err
}

func start(c *ledger.Context, p Change) (any, error) {
	a, err := move(c, p)
	switch {
	case err != nil:
		return nil, err
	case a.State == Running:
		return nil, ledger.Refuse(ledger.Conflict, nil, "The app %s runs already", a.Name)
	}
	was := a
	a.State, a.Reason = Running, ""
	if err := provide(c, &was, &a); err != nil {
		return nil, err
	}
	if err := ask(c, a, a.Now, OnStart); err != nil {
		return nil, err
	}
	return a.store(c, "app.started")
}

func stop(c *ledger.Context, p Change) (any, error) {
	a, err := move(c, p)
	switch {
	case err != nil:
		return nil, err
	case a.State != Running:
		return nil, ledger.Refuse(ledger.Conflict, nil, "The app %s does not run", a.Name)
	}
	was := a
	a.State = Stopped
	if err := provide(c, &was, &a); err != nil {
		return nil, err
	}
	if err := ask(c, a, a.Now, OnStop); err != nil {
		return nil, err
	}
	return a.store(c, "app.stopped")
}

// goBack takes an app back to the release before.
func goBack(c *ledger.Context, a App, by, why string) (App, error) {
	if err := carryOut(c, a.Back.Steps, by); err != nil {
		return a, err
	}
	was := a
	a.Reason = "went back from " + a.Now.Version
	if why != "" {
		a.Reason += ": " + why
	}
	a.Now, a.Back = a.Back.Release, nil
	cancel(c, a, OnUpgrade, OnHealth)
	if err := provide(c, &was, &a); err != nil {
		return a, err
	}
	return a, ask(c, a, a.Now) // whose turn it is now
}

func rollback(c *ledger.Context, p Change) (any, error) {
	a, err := present(c, p.ID)
	switch {
	case err != nil:
		return nil, err
	case a.Back == nil:
		return nil, ledger.Refuse(ledger.Conflict, nil,
			"The app %s has no version to go back to: it was not upgraded since it was installed, or went back already", a.Name)
	}
	if a, err = goBack(c, a, c.Cmd.Actor.ID, ""); err != nil {
		return nil, err
	}
	return a.store(c, "app.rolled_back")
}

// settle notes how a program of a hook ended, or decides an upgrade by the health of the app.
func settle(c *ledger.Context, p Change) (any, error) {
	if hookOver(c, c.Cmd.Company, p.ID) {
		return nil, nil
	}
	a, err := present(c, p.ID)
	if err != nil {
		return nil, err
	}
	h, why := HealthOf(c.Tx, a, core.TimeOf(c.Now))
	switch h {
	case Good:
		a.Back.Until = 0
		return a.store(c, "app.upgrade_kept")
	case Bad:
		part, tx := *c, c.Tx
		part.Tx = tx.Child()
		back, err := goBack(&part, a, a.Back.By, why)
		if err != nil { // what the steps name may be gone
			a.State, a.Back.Until, a.Reason = Failed, 0, core.Snippet("could not go back after "+why+": "+err.Error(), maxText)
			return a.store(c, "app.rolled_back")
		}
		part.Tx.Merge()
		return back.store(c, "app.rolled_back")
	}
	return nil, ledger.Refuse(ledger.Conflict, nil, "Nothing decides yet whether the app %s stays", a.Name)
}

func remove(c *ledger.Context, p Change) (any, error) {
	a, err := present(c, p.ID)
	if err != nil {
		return nil, err
	}
	if by := Needing(c.Tx, a.Company, a.Name); by != "" {
		return nil, ledger.Refuse(ledger.Conflict, nil, "The app %s needs %s; remove it first", by, a.Name)
	}
	if a, err = move(c, p); err != nil {
		return nil, err
	}
	cancel(c, a)
	if err := provide(c, &a, nil); err != nil {
		return nil, err
	}
	if err := ask(c, a, a.Now, OnRemove); err != nil {
		return nil, err
	}
	Rows.Delete(c.Tx, a.Company, a.ID)
	a.record(c, "app.removed")
	return nil, nil
}
