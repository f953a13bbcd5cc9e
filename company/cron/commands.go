package cron

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/kernel/topic"
	"github.com/selvage-mesh/selvage/ledger"
)

// Save is the payload of cron.save. A job of the same name is replaced; what it fired stays.
// The node that takes the request computes Next.
type Save struct {
	Name    string              `cbor:"1,keyasint"`
	Cron    string              `cbor:"2,keyasint"`
	Zone    string              `cbor:"3,keyasint"`
	Missed  string              `cbor:"4,keyasint,omitempty"` // "": MissedOnce
	Busy    string              `cbor:"5,keyasint,omitempty"` // "": BusySkip
	Topic   string              `cbor:"6,keyasint,omitempty"`
	Text    string              `cbor:"7,keyasint,omitempty"` // "": a JSON object about the firing
	JSON    bool                `cbor:"8,keyasint,omitempty"`
	Next    core.Time           `cbor:"9,keyasint"`
	Paused  bool                `cbor:"10,keyasint,omitempty"`
	Process *company.NewProcess `cbor:"11,keyasint,omitempty"` // instead of a topic
}

// Change is the payload of cron.pause, cron.resume, cron.remove and cron.run. To resume needs
// the next time.
type Change struct {
	Name string    `cbor:"1,keyasint"`
	Next core.Time `cbor:"2,keyasint,omitempty"`
}

// Tick is the payload of cron.tick, by which the leader fires a job whose time Due has come.
type Tick struct {
	Name    string    `cbor:"1,keyasint"`
	Due     core.Time `cbor:"2,keyasint"`
	Next    core.Time `cbor:"3,keyasint,omitempty"` // 0: never again
	Problem string    `cbor:"4,keyasint,omitempty"` // why there is no Next
	Left    int64     `cbor:"5,keyasint,omitempty"` // how many missed times this firing stands for, beside its own
}

// The kinds of commands.
const (
	KindSave   = "cron.save"
	KindPause  = "cron.pause"
	KindResume = "cron.resume"
	KindRemove = "cron.remove"
	KindRun    = "cron.run"
	KindTick   = "cron.tick"
)

// Rules are those of this room.
var Rules = company.Rules{
	Kinds: []company.Kind{
		{Name: KindSave, From: company.FromBoard, Weight: company.Weights.SetUp, Do: ledger.Typed(save)},
		{Name: KindPause, From: company.FromBoard, Weight: company.Weights.Steering, Do: ledger.Typed(pause)},
		{Name: KindResume, From: company.FromBoard, Weight: company.Weights.Steering, Do: ledger.Typed(resume)},
		{Name: KindRemove, From: company.FromBoard, Weight: company.Weights.Erase, Do: ledger.Typed(remove)},
		{Name: KindRun, From: company.FromBoard, Weight: company.Weights.Execute, Do: ledger.Typed(run)},
		{Name: KindTick, From: company.FromNode, Weight: company.Weights.ByNodes, Do: ledger.Typed(tick)},
	},
	Forget: map[string]func(tx *ledger.Tx, id string, row []byte){
		"cron": func(tx *ledger.Tx, _ string, row []byte) {
			if j := core.DecodeRow[Job](row); j.Due != 0 {
				tx.Delete(dueKey(j))
			}
		},
	},
}

func (s Save) check(of ledger.CompanyID) error {
	bad := func(format string, args ...any) error { return ledger.Refuse(ledger.Invalid, nil, format, args...) }
	if !nameSyntax.MatchString(s.Name) {
		return bad("name: 1 to 59 letters, digits, dots, dashes and underscores, beginning with a letter or digit")
	}
	if _, err := core.ParseCron(s.Cron); err != nil {
		return err
	}
	switch {
	case s.Zone == "" || len(s.Zone) > maxZone:
		return bad("timezone: required, at most %d bytes, such as Europe/Berlin", maxZone)
	case s.Next <= 0:
		return ledger.Refuse(ledger.Unprocessable, nil, "The schedule never fires")
	case !slices.Contains([]string{"", MissedOnce, MissedAll}, s.Missed):
		return bad("missed %q: give once or all", s.Missed)
	case !slices.Contains([]string{"", BusySkip, BusyReplace}, s.Busy):
		return bad("busy %q: give skip or replace", s.Busy)
	case (s.Topic == "") == (s.Process == nil):
		return bad("topic or process: give one of them")
	case s.Process != nil && of != "":
		return bad("process: only jobs of the mesh start processes; have this job publish to a topic")
	case len(s.Text) > MaxText || !utf8.ValidString(s.Text):
		return bad("text: UTF-8 of at most %d bytes", MaxText)
	case s.JSON && !json.Valid([]byte(s.Text)):
		return bad("text: is not JSON")
	case s.Process != nil:
		return company.Ask.Processes.CheckProcess(s.Process.Clone().Named(processPrefix + s.Name))
	}
	if err := topic.Check(s.Topic); err != nil {
		return bad("topic: %s", err.Error())
	}
	return nil
}

func save(c *ledger.Context, s Save) (any, error) {
	of, now := c.Cmd.Company, core.TimeOf(c.Now)
	if err := s.check(of); err != nil {
		return nil, err
	}
	was, known := Of(c.Tx, of, s.Name)
	if !known && len(List(c.Tx, of)) >= MaxJobs {
		return nil, ledger.Refuse(ledger.Conflict, nil,
			"there are %d cron jobs, as many as there may be: remove one", MaxJobs)
	}
	j := Job{Name: s.Name, Company: of, CreatedAt: now, By: c.Cmd.Actor.Type + ":" + c.Cmd.Actor.ID, Due: was.Due}
	if known {
		j.CreatedAt, j.By, j.Fired, j.Firings = was.CreatedAt, was.By, was.Fired, was.Firings
	}
	j.Cron, j.Zone, j.Missed, j.Busy, j.Topic, j.Text, j.JSON, j.Next, j.Paused, j.UpdatedAt = s.Cron, s.Zone, s.Missed,
		s.Busy, s.Topic, s.Text, s.JSON, s.Next, s.Paused, now
	if j.Missed == "" {
		j.Missed = MissedOnce
	}
	if j.Busy == "" {
		j.Busy = BusySkip
	}
	if s.Process != nil {
		p := s.Process.Clone().Named(processPrefix + s.Name)
		j.Process = &p
	}
	hold(c.Tx, was, -1)
	hold(c.Tx, j, 1)
	j = put(c.Tx, was, j)
	record(c, "cron.saved", j)
	return j, nil
}

// hold refers to the module of a job's process, or does not any more.
func hold(tx *ledger.Tx, j Job, by int) {
	switch p := j.Process; {
	case p == nil || p.Module == "":
	case by > 0:
		company.RefBlob(tx, "", p.Module, p.Size, p.Nodes)
	default:
		company.UnrefBlob(tx, "", p.Module)
	}
}

func record(c *ledger.Context, action string, j Job) {
	c.Record(ledger.Change{Action: action, EntityType: "cron_job", EntityID: j.Name,
		Details: core.Object{}.Str("cron", j.Cron).Str("timezone", j.Zone).Str("topic", j.Topic).
			Bool("paused", j.Paused).Close()})
}

func find(c *ledger.Context, name string) (Job, error) {
	j, ok := Of(c.Tx, c.Cmd.Company, name)
	if !ok {
		return j, ledger.Refuse(ledger.NotFound, nil, "Cron job not found")
	}
	return j, nil
}

func pause(c *ledger.Context, p Change) (any, error) {
	was, err := find(c, p.Name)
	if err != nil {
		return nil, err
	}
	j := was
	j.Paused, j.Next, j.UpdatedAt = true, 0, core.TimeOf(c.Now)
	j = put(c.Tx, was, j)
	record(c, "cron.paused", j)
	return j, nil
}

func resume(c *ledger.Context, p Change) (any, error) {
	was, err := find(c, p.Name)
	if err != nil {
		return nil, err
	}
	if p.Next <= 0 {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "The schedule never fires")
	}
	j := was
	j.Paused, j.Next, j.Problem, j.UpdatedAt = false, p.Next, "", core.TimeOf(c.Now)
	j = put(c.Tx, was, j)
	record(c, "cron.resumed", j)
	return j, nil
}

func remove(c *ledger.Context, p Change) (any, error) {
	j, err := find(c, p.Name)
	if err != nil {
		return nil, err
	}
	hold(c.Tx, j, -1)
	drop(c.Tx, j)
	record(c, "cron.removed", j)
	if j.Process != nil {
		company.Ask.Processes.EndProcess(c, j.Process.Name)
	}
	return nil, nil
}

// run fires a job at once. Its next time stays.
func run(c *ledger.Context, p Change) (any, error) {
	j, err := find(c, p.Name)
	if err != nil {
		return nil, err
	}
	said, err := fire(c, &j, 0, 0)
	if err != nil {
		return nil, err
	}
	j = put(c.Tx, j, noted(c, j, 0, said, true))
	c.Record(ledger.Change{Action: "cron.run", EntityType: "cron_job", EntityID: j.Name,
		Details: core.Object{}.Int("number", j.Fired).Str("result", said).Close()})
	return j, nil
}

// tick fires a job that is due. That it can not do what it is for does not keep it from its
// next time.
func tick(c *ledger.Context, p Tick) (any, error) {
	was, err := find(c, p.Name)
	if err != nil {
		return nil, err
	}
	if was.Due == 0 || was.Due != p.Due || core.TimeOf(c.Now) < p.Due || p.Next != 0 && p.Next <= p.Due {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Cron job %s is not due", p.Name)
	}
	j := was
	j.Next = p.Next
	if p.Next == 0 {
		j.Paused, j.Problem = true, core.NullText(core.Snippet(p.Problem, maxSaid))
	}
	said, ok := "the company is not active", false
	if row, found := entity.CompanyTable.Get(c.Tx, j.Company, j.Company); j.Company == "" || found &&
		row.Status == entity.CompanyActive {
		said, err = fire(c, &j, p.Due, p.Left)
		if ok = err == nil; !ok {
			said = err.Error()
		}
	}
	j = put(c.Tx, was, noted(c, j, p.Due, said, ok))
	c.Record(ledger.Change{Action: "cron.fired", EntityType: "cron_job", EntityID: j.Name,
		Details: core.Object{}.Int("number", j.Fired).Time("due", p.Due).Bool("ok", ok).
			Str("result", j.Firings[0].Said).Close()})
	return nil, nil
}

// fire does what a job is for, and says what it did. Its error is a refusal, after which
// nothing is written.
func fire(c *ledger.Context, j *Job, due core.Time, missed int64) (said string, err error) {
	if j.Process != nil {
		return "started " + j.Process.Name, company.Ask.Processes.StartProcess(c, *j.Process, j.Busy == BusyReplace)
	}
	text, isJSON := j.Text, j.JSON
	if text == "" {
		text, isJSON = string(core.Object{}.Str("job", j.Name).Int("number", j.Fired+1).Time("due", due).
			Int("missed", missed).Close()), true
	}
	return "published to " + j.Topic, company.Ask.Topics.PublishTo(c, j.Topic, text, isJSON, "cron:"+j.Name)
}

// noted returns j with one firing more.
func noted(c *ledger.Context, j Job, due core.Time, said string, ok bool) Job {
	j.Fired++
	f := Firing{Number: j.Fired, Due: due, At: core.TimeOf(c.Now), Height: c.Height,
		Said: core.Snippet(said, maxSaid), OK: ok}
	j.Firings = append([]Firing{f}, j.Firings[:min(len(j.Firings), kept-1)]...)
	return j
}
