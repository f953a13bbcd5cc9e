package process

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/cron"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/scheduler"
)

// CronRoutes are those of the kernel's clock.
func CronRoutes() []api.Route {
	const tag, at = "kernel", "/api/v1/cron"
	scope := []api.Param{{Name: "companyId", Doc: "whose; the mesh's own unless given"}}
	return []api.Route{
		{Method: "GET", Path: at, Tag: tag, Summary: "List the cron jobs of the mesh or of a company", Who: api.Board,
			Query: scope, Out: cronJobs{}, Handle: listCron},
		{Method: "PUT", Path: at + "/{name}", Tag: tag,
			Summary: "Add a cron job, or change it: at its times it publishes to a topic, or starts a process", Who: api.Board,
			Query: scope,
			In:    cronBody{}, Out: cronJob{}, Handle: saveCron},
		{Method: "GET", Path: at + "/{name}", Tag: tag, Summary: "Read a cron job with its last firings", Who: api.Board,
			Query: scope, Out: cronJob{}, Handle: readCron},
		{Method: "POST", Path: at + "/{name}/pause", Tag: tag, Summary: "Pause a cron job", Who: api.Board, Query: scope,
			Out: cronJob{}, Handle: changeCron(cron.KindPause)},
		{Method: "POST", Path: at + "/{name}/resume", Tag: tag, Summary: "Let a paused cron job go on with its next time",
			Who: api.Board, Query: scope, Out: cronJob{}, Handle: changeCron(cron.KindResume)},
		{Method: "POST", Path: at + "/{name}/run", Once: true, Tag: tag, Summary: "Fire a cron job now; its next time stays",
			Who: api.Board, Query: scope, Out: cronJob{}, Handle: changeCron(cron.KindRun)},
		{Method: "DELETE", Path: at + "/{name}", Tag: tag, Summary: "Remove a cron job, and end the process that it started",
			Who: api.Board, Query: scope, Status: 204, Handle: removeCron},
	}
}

type cronBody struct {
	Company ledger.CompanyID `json:"companyId,omitempty" format:"uuid" doc:"whose job; the mesh's own unless given"`
	Cron    string           `json:"cron" minLength:"9" maxLength:"200" maxBytes:"200" doc:"minute, hour, day of the month, month, day of the week"`
	Zone    string           `json:"timezone,omitempty" maxLength:"100" maxBytes:"100" doc:"of the IANA database, such as Europe/Berlin; UTC unless given"`
	Missed  string           `json:"missed,omitempty" enum:"once,all" doc:"times that passed while nothing could fire them: once, together and late, or all, each late and at most 25; once unless given"`
	Busy    string           `json:"busy,omitempty" enum:"skip,replace" doc:"if the process of the last time still runs: skip this time, or replace it; skip unless given"`
	Topic   string           `json:"topic,omitempty" maxLength:"200" maxBytes:"200" doc:"to which it publishes"`
	Text    string           `json:"text,omitempty" maxLength:"16384" maxBytes:"16384" doc:"what it publishes; unless given, a JSON object with job, number, due and missed"`
	Payload json.RawMessage  `json:"payload,omitempty" types:"any" maxBytes:"16384" doc:"instead of text: JSON"`
	Process *cronProcess     `json:"process,omitempty" nullable:"false" doc:"instead of a topic: what it starts; of jobs of the mesh alone"`
	Paused  bool             `json:"paused,omitempty"`
}

type cronProcess struct {
	specBody
	Replicas int64    `json:"replicas,omitempty" minimum:"1" maximum:"64" doc:"how many at a time; 1 unless given"`
	Labels   []string `json:"labels,omitempty" maxItems:"16" doc:"labels that a node needs to run it"`
}

// A cronJob is a job with what it starts. Variables are shown by name.
type cronJob struct {
	cron.Job
	Process *cronStarts `json:"process"`
}

type cronStarts struct {
	Name     string   `json:"name"`
	Backend  string   `json:"backend"`
	Command  []string `json:"command"`
	Module   string   `json:"module"`
	Image    string   `json:"image"`
	Env      []string `json:"env"` // names
	Replicas int64    `json:"replicas"`
	Labels   []string `json:"labels"`
	Node     string   `json:"node_id"`
}

type cronJobs struct {
	Jobs []cronJob `json:"jobs"`
}

func cronJobOf(j cron.Job) cronJob {
	j.Firings = append([]cron.Firing{}, j.Firings...)
	out := cronJob{Job: j}
	if p := j.Process; p != nil {
		var s kernel.Spec
		_ = json.Unmarshal(p.Spec, &s) // it was checked when the job was saved
		out.Process = &cronStarts{Name: p.Name, Backend: string(s.Backend), Command: append([]string{}, s.Command...),
			Module: s.Module, Image: s.Image,
			Env: append([]string{}, slices.Sorted(maps.Keys(s.Env))...), Replicas: p.Replicas,
			Labels: append([]string{}, p.Labels...), Node: p.Node}
	}
	return out
}

const cronOfMesh = "Cron jobs"

func listCron(rc *api.Request) (api.Response, error) {
	of, err := api.ScopeOf(rc, "", cronOfMesh)
	if err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (cronJobs, error) {
		out := cronJobs{Jobs: []cronJob{}}
		for _, j := range cron.List(tx, of) {
			out.Jobs = append(out.Jobs, cronJobOf(j))
		}
		return out, nil
	})
}

// theJob returns the job that the path names.
func theJob(rc *api.Request) (j cron.Job, of ledger.CompanyID, err error) {
	if of, err = api.ScopeOf(rc, "", cronOfMesh); err != nil {
		return j, of, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		var ok bool
		if j, ok = cron.Of(tx, of, rc.Path("name")); !ok {
			return api.NotFound("Cron job not found")
		}
		return nil
	})
	return j, of, err
}

func readCron(rc *api.Request) (api.Response, error) {
	j, _, err := theJob(rc)
	return api.OK(cronJobOf(j)), err
}

func saveCron(rc *api.Request) (api.Response, error) {
	in, err := api.Body[cronBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	of, err := api.ScopeOf(rc, in.Company, cronOfMesh)
	if err != nil {
		return api.Response{}, err
	}
	p := cron.Save{Name: rc.Path("name"), Cron: in.Cron, Zone: in.Zone, Missed: in.Missed, Busy: in.Busy, Topic: in.Topic,
		Text: in.Text, Paused: in.Paused}
	if p.Zone == "" {
		p.Zone = "UTC"
	}
	switch {
	case in.Text != "" && in.Payload != nil:
		return api.Response{}, api.Invalid("text or payload: give one of them")
	case in.Payload != nil:
		var b bytes.Buffer
		if err := json.Compact(&b, in.Payload); err != nil {
			return api.Response{}, api.Invalid("payload: is not JSON")
		}
		p.Text, p.JSON = b.String(), true
	}
	if in.Process != nil {
		if p.Process, err = in.Process.process(rc, p.Name); err != nil {
			return api.Response{}, err
		}
	}
	if p.Next, err = scheduler.NextRun(p.Cron, p.Zone, rc.Now()); err != nil {
		return api.Response{}, err
	}
	j, err := api.Do[cron.Job](rc, cron.KindSave, of, p)
	return api.OK(cronJobOf(j)), err
}

// process returns what a job starts. It does its work and ends, unless it says otherwise.
func (b cronProcess) process(rc *api.Request, job string) (*company.NewProcess, error) {
	b.Name = "cron." + job
	spec, err := b.spec(kernel.Permanent)
	if err != nil {
		return nil, err
	}
	if err := noSecrets(spec); err != nil {
		return nil, err
	}
	longLived(&spec, b.Capabilities) // a night's work may take longer than what is right for a spawned command
	p := &company.NewProcess{Replicas: max(1, b.Replicas), Labels: b.Labels, Module: spec.Module, Size: spec.ModuleBytes}
	if p.Spec, err = json.Marshal(spec); err != nil {
		return nil, err
	}
	if b.Node != "" {
		n, err := findNode(rc, b.Node)
		if err != nil {
			return nil, err
		}
		p.Node = string(n.id)
	}
	return p, nil
}

// noSecrets refuses variables that look like secrets: a declared process is stored readable.
func noSecrets(spec kernel.Spec) error {
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		if conceal.SecretName(name) {
			return api.Invalid("env %s: its name says that it is a secret, and a declared process is stored "+
				"readable; have the program read it from a file of its node", name)
		}
	}
	return nil
}

// changeCron answers a request to pause, resume or fire a job.
func changeCron(kind string) func(rc *api.Request) (api.Response, error) {
	return func(rc *api.Request) (api.Response, error) {
		j, of, err := theJob(rc)
		if err != nil {
			return api.Response{}, err
		}
		p := cron.Change{Name: j.Name}
		if kind == cron.KindResume {
			if p.Next, err = scheduler.NextRun(j.Cron, j.Zone, rc.Now()); err != nil {
				return api.Response{}, err
			}
		}
		j, err = api.Do[cron.Job](rc, kind, of, p)
		return api.OK(cronJobOf(j)), err
	}
}

func removeCron(rc *api.Request) (api.Response, error) {
	j, of, err := theJob(rc)
	if err != nil {
		return api.Response{}, err
	}
	_, err = rc.Submit(cron.KindRemove, of, cron.Change{Name: j.Name})
	return api.Response{}, err
}
