package onboard

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter"
)

// An agent is one of the company.
type agent struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Role        string `json:"role"`
	AdapterType string `json:"adapterType"`
}

const (
	// firstTaskWait bounds the wait for the first task with one way; the task itself goes on.
	firstTaskWait = 5 * time.Minute
	// lookEvery is how often it is looked how the task stands.
	lookEvery = 500 * time.Millisecond
)

// staff hires the CEO, or finds it, and sees to it that it and the agents of a starter can work.
func (o *onboarding) staff() (ceo agent, err error) {
	all, err := o.agents()
	if err != nil {
		return ceo, err
	}
	idle, err := o.lacking(all)
	if err != nil {
		return ceo, err
	}
	if n := slices.IndexFunc(all, func(a agent) bool { return a.Role == "ceo" }); n >= 0 {
		ceo = all[n]
		o.say("3. %s leads it already", ceo.Name)
		if len(idle) > 0 {
			err = o.employ(idle)
		}
		return ceo, err
	}
	name, err := o.ask("What is its CEO called?", o.ceo)
	if err != nil {
		return ceo, err
	}
	body := map[string]any{"name": name, "role": "ceo", "title": "Chief Executive", "icon": "crown",
		"capabilities": "Breaks the company's goal down, hires who is missing, and asks the board for what it may not " +
			"decide itself."}
	w := work{adapter: "process", on: o.command, config: map[string]any{"command": o.command}}
	if len(o.arguments) > 0 {
		w.config["args"] = o.arguments
	}
	if o.command == "" {
		if w, err = o.choose(); err != nil {
			return ceo, err
		}
	}
	body["adapterType"], body["adapterConfig"] = w.adapter, w.config
	if len(w.labels) > 0 {
		body["runtimeConfig"] = map[string]any{"placement": map[string]any{"labels": w.labels}}
	}
	if err := o.call(http.MethodPost, "/api/companies/"+o.made.ID+"/agents", body, &ceo); err != nil {
		return ceo, err
	}
	o.staffed = []agent{ceo}
	o.say("3. hired %s as CEO; it runs on %s", ceo.Name, w.on)
	return ceo, nil
}

func (o *onboarding) agents() (all []agent, err error) {
	return all, o.call(http.MethodGet, "/api/companies/"+o.made.ID+"/agents", nil, &all)
}

// lacking are the agents whose adapter no node can carry out. What is missing is said,
// and how to get it.
func (o *onboarding) lacking(all []agent) (idle []agent, err error) {
	of := map[string][]agent{}
	for _, a := range all {
		if k, ok := adapter.Find(a.AdapterType); ok && k.Program != "" {
			of[a.AdapterType] = append(of[a.AdapterType], a)
		}
	}
	for _, k := range adapter.Kinds() {
		if len(of[k.Type]) == 0 {
			continue
		}
		missing, how, err := Missing(o.c, o.cmd, o.made.ID, k.Type)
		if err != nil {
			return nil, err
		}
		if missing == "" {
			continue
		}
		idle = append(idle, of[k.Type]...)
		var names []string
		for _, a := range of[k.Type] {
			names = append(names, a.Name)
		}
		o.say("   %s: %s run on it, and no node has it: %s. To get it: %s", k.Name, strings.Join(names, ", "), missing, how)
	}
	return idle, nil
}

// employ has agents work in a way that works here.
func (o *onboarding) employ(idle []agent) error {
	w, err := o.choose()
	if err != nil {
		return err
	}
	return o.change(idle, w)
}

// change has agents work in another way.
func (o *onboarding) change(agents []agent, w work) error {
	var names []string
	for _, a := range agents {
		body := map[string]any{"adapterType": w.adapter, "adapterConfig": w.config, "replaceAdapterConfig": true}
		if len(w.labels) > 0 {
			body["runtimeConfig"] = map[string]any{"placement": map[string]any{"labels": w.labels}}
		}
		if err := o.call(http.MethodPatch, "/api/agents/"+a.ID, body, nil); err != nil {
			return err
		}
		names = append(names, a.Name)
	}
	o.staffed = agents
	o.say("   %s: run on %s now; selvage agent update changes that", strings.Join(names, ", "), w.on)
	return nil
}

// choose takes a way that works: the one that is asked for, or of those that need no
// yes the first whose test goes well.
func (o *onboarding) choose() (work, error) {
	if o.left == nil {
		all, err := o.ways()
		if err != nil {
			return work{}, err
		}
		o.left = all
		for _, w := range all {
			o.say("   there is %s (%s)", w.what, w.name)
		}
	}
	for len(o.left) > 0 {
		w, err := o.pick()
		if err != nil {
			return work{}, err
		}
		done, err := w.set()
		if err == nil {
			return done, nil
		}
		if o.use != "" {
			return work{}, err
		}
		o.say("   it does not work: %v", err)
	}
	return work{}, errors.New("there is nothing that an agent can work with")
}

// pick takes one of the ways that are left out of them.
func (o *onboarding) pick() (way, error) {
	at := func(name string) int { return slices.IndexFunc(o.left, func(w way) bool { return w.name == name }) }
	suggested := slices.IndexFunc(o.left, func(w way) bool { return w.known })
	var names []string
	for _, w := range o.left {
		names = append(names, w.name)
	}
	for range maxAsked {
		answer := o.use
		if answer == "" {
			var err error
			if answer, err = o.ask("What do its agents work with? ("+strings.Join(names, ", ")+")",
				o.left[max(suggested, 0)].name); err != nil {
				return way{}, err
			}
		}
		n := at(answer)
		if n >= 0 {
			w := o.left[n]
			o.left = slices.Delete(o.left, n, n+1)
			return w, nil
		}
		if o.use != "" {
			return way{}, fmt.Errorf("--use %s: there is only %s", o.use, strings.Join(names, ", "))
		}
		o.say("%q is none of %s", answer, strings.Join(names, ", "))
	}
	return way{}, errors.New("nothing was chosen")
}

// An issue is a task.
type issue struct {
	ID         string `json:"id"`
	Identifier string `json:"identifier"`
	Title      string `json:"title"`
	Status     string `json:"status"`
}

// firstTask gives the CEO something to do and shows what comes of it. Where that fails
// the next way is taken, as long as there is one.
func (o *onboarding) firstTask(ceo agent) (done issue, err error) {
	title, err := o.ask("A first task for "+ceo.Name+"? (none: later)", cmp.Or(o.task, firstTask))
	if err != nil || title == "none" {
		return done, err
	}
	var all []issue
	if err := o.call(http.MethodGet, "/api/companies/"+o.made.ID+"/issues?assigneeAgentId="+ceo.ID, nil,
		&all); err != nil {
		return done, err
	}
	if n := slices.IndexFunc(all, func(i issue) bool {
		return strings.EqualFold(i.Title, title) &&
			i.Status != "cancelled"
	}); n >= 0 {
		o.say("4. its first task is there already: %s is %s", all[n].Identifier, all[n].Status)
		return all[n], nil
	}
	body := map[string]any{"title": title, "status": "todo", "assigneeAgentId": ceo.ID,
		"description": "Our goal: " + o.goal}
	if err := o.call(http.MethodPost, "/api/companies/"+o.made.ID+"/issues", body, &done); err != nil {
		return done, err
	}
	o.say("4. gave %s its first task, %s: %s", ceo.Name, done.Identifier, title)
	for {
		over, err := o.watch(&done)
		if err != nil || !over || done.Status == "done" || done.Status == "in_review" {
			return done, err
		}
		if o.command != "" || o.use != "" || len(o.left) == 0 || len(o.staffed) == 0 {
			return done, nil
		}
		o.say("   that did not work; what is left is tried")
		w, err := o.choose()
		if err != nil {
			return done, err
		}
		if err := o.change(o.staffed, w); err != nil {
			return done, err
		}
		if err := o.call(http.MethodPatch, "/api/issues/"+done.ID, map[string]any{"status": "todo"}, &done); err != nil {
			return done, err
		}
	}
}

// watch waits for the end of a task and prints what is said about it.
func (o *onboarding) watch(i *issue) (over bool, err error) {
	ctx := o.cmd.Context()
	status := ""
	for deadline := time.Now().Add(firstTaskWait); ; {
		if err := o.call(http.MethodGet, "/api/issues/"+i.ID, nil, i); err != nil {
			return false, err
		}
		if i.Status != status {
			status = i.Status
			o.say("   %s is %s", i.Identifier, i.Status)
		}
		if i.Status != "todo" && i.Status != "in_progress" {
			break
		}
		if time.Now().After(deadline) {
			o.say("   it is still at work; selvage issue show %s tells how it stands", i.Identifier)
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
	var said []struct {
		ID   string `json:"id"`
		Body string `json:"body"`
	}
	if err := o.call(http.MethodGet, "/api/issues/"+i.ID+"/comments?order=asc", nil, &said); err != nil {
		return true, err
	}
	for _, c := range said {
		if o.told[c.ID] {
			continue
		}
		o.told[c.ID] = true
		o.say("\n%s\n", indented(c.Body))
	}
	return true, nil
}

// indented moves a text under what it belongs to.
func indented(text string) string {
	return "   | " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n   | ")
}
