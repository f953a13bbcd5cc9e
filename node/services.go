package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
)

// serviceLogs replaces the agent in the names of service logs.
const serviceLogs = "runtime-services"

// A keeper runs this node's services, and the commands requested for its workspaces.
// Run's goroutine decides; each service and command has its own.
type keeper struct {
	n *Node

	mu       sync.Mutex // guards the fields below
	services map[string]*keptService
	jobs     map[string]bool
}

// A keptService is one generation of a service on this node.
type keptService struct {
	generation uint64
	stop       context.CancelCauseFunc // its cause is reported as the reason, unless it is nil
}

// run works until ctx ends, and returns when everything that it started has ended.
func (k *keeper) run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	every(ctx, serviceEvery, func() { k.look(ctx, &work) })
}

// look compares what should run here with what is running.
func (k *keeper) look(ctx context.Context, work *sync.WaitGroup) {
	n := k.n
	holds, halted := n.work.worker.Holds(), false
	var wanted []place.WantedService
	var due []place.WorkspaceOperation
	err := n.ledger.View(func(tx *ledger.Tx) error {
		_, halted = entity.Halted(tx)
		wanted = place.ServicesOn(tx, string(n.ID()))
		due = place.OperationsOn(tx, string(n.ID()))
		return nil
	})
	if err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known := map[string]place.WantedService{}
	for _, s := range wanted {
		known[s.ID] = s
	}
	for id, here := range k.services {
		switch s, ok := known[id]; {
		case !holds || !ok || s.Desired != "running" || s.Generation != here.generation:
			here.stop(nil)
		case s.Denied != "":
			here.stop(errors.New(place.ServiceDenial(s.Denied)))
		}
	}
	if !holds {
		return
	}
	for _, s := range wanted {
		if k.services[s.ID] != nil {
			continue // running, or about to end
		}
		if s.Desired != "running" {
			work.Go(func() {
				k.report(ctx, s.RuntimeService, place.ReportService{Status: place.ServiceStopped, Health: "unknown",
					LogRef: string(s.LogRef)})
			})
			continue
		}
		if s.Denied != "" {
			if s.Status != place.ServiceStopped {
				work.Go(func() {
					k.report(ctx, s.RuntimeService, place.ReportService{Status: place.ServiceStopped, Health: "unknown",
						Error: place.ServiceDenial(s.Denied), LogRef: string(s.LogRef)})
				})
			}
			continue
		}
		if len(k.services) >= maxServices {
			n.log.Warn("no room for another service", "service", s.ID)
			continue
		}
		sctx, stop := context.WithCancelCause(ctx)
		here := &keptService{generation: s.Generation, stop: stop}
		k.services[s.ID] = here
		work.Go(func() {
			defer func() {
				stop(nil)
				k.mu.Lock()
				delete(k.services, s.ID)
				k.mu.Unlock()
			}()
			k.keep(sctx, s.RuntimeService)
		})
	}
	if halted {
		return
	}
	for _, o := range due {
		if _, here := n.work.active.Load(o.ID); here || k.jobs[o.ID] {
			continue // running
		}
		k.jobs[o.ID] = true
		work.Go(func() {
			defer func() {
				k.mu.Lock()
				delete(k.jobs, o.ID)
				k.mu.Unlock()
			}()
			k.job(ctx, o)
		})
	}
}

// job executes a requested command. A command that an earlier process of this node left
// is ended.
func (k *keeper) job(ctx context.Context, o place.WorkspaceOperation) {
	n := k.n
	fail := func(why string) {
		if err := n.carryOut(ctx, n.command(place.KindWorkspaceOpFinish, o.Company, place.FinishOperation{ID: o.ID,
			Error: why})); err != nil {
			n.log.Warn("end of a workspace operation could not be told", "operation", o.ID, "error", err)
		}
	}
	if o.LogRef != "" {
		fail("The node was restarted")
		return
	}
	p, err := k.place(o.Company, o.Place)
	if err != nil {
		fail(err.Error())
		return
	}
	declared, err := place.DeclaredCommands(p.l.Runtime)
	if err != nil {
		fail(err.Error())
		return
	}
	for _, d := range declared {
		if d.ID != o.Job || d.Kind != "job" {
			continue
		}
		env, secrets, err := n.spaceEnv(ctx, p.run, p.f, string(o.Issue), string(o.Run))
		if err != nil {
			fail(err.Error())
			return
		}
		for key, v := range d.Env {
			env[key] = v
		}
		f := p.f
		f.Dir = filepath.Join(f.Dir, d.Cwd)
		err = n.carryOutIn(ctx, spaceCommand{w: place.ExecutionWorkspace{ID: string(o.Workspace), Company: o.Company}, f: f,
			phase: o.Phase, name: "command " + d.Name, line: d.Command,
			env: env, secrets: secrets, authority: n.authorityWhile(o.Over), alreadyOpen: o.ID})
		if err != nil {
			n.log.Info("workspace command", "operation", o.ID, "error", err)
		}
		return
	}
	fail("The workspace does not declare this command any more")
}

// A spacePlace is a workspace on this node, of an issue or of a project.
type spacePlace struct {
	f   entity.RunFolder
	l   place.Lifecycle
	run entity.Run // its project's variables apply
	w   place.ExecutionWorkspace
}

func (k *keeper) place(of ledger.CompanyID, id string) (p spacePlace, err error) {
	err = k.n.ledger.View(func(tx *ledger.Tx) error {
		if w, ok := place.ExecutionWorkspaceByID(tx, id); ok {
			p.w, p.f, p.l = w, folderOf(w), place.LifecycleOf(tx, w)
			p.run = entity.Run{ID: w.Run, Company: of, Context: entity.RunContext{IssueID: string(w.SourceIssue)}}
			if r, ok := entity.RunOf(tx, of, w.Run); ok {
				p.run = r
			}
			return nil
		}
		w, ok := place.ProjectWorkspaceOf(tx, of, id)
		if !ok {
			return errors.New("the workspace is gone")
		}
		p.f = entity.RunFolder{ProjectWorkspace: w.ID, Project: w.Project, Dir: string(w.Cwd), Strategy: "project_primary",
			Source: "project_primary", Mode: entity.SharedWorkspace}
		p.l, p.run = w.Services(), entity.Run{Company: of}
		return nil
	})
	return p, err
}

// report records a service's state. An error is logged, and the state is reported again
// later.
func (k *keeper) report(ctx context.Context, s place.RuntimeService, r place.ReportService) {
	r.ID, r.Generation = s.ID, s.Generation
	if err := k.n.carryOut(ctx, k.n.command(place.KindRuntimeServiceReport, s.Company, r)); err != nil &&
		ctx.Err() == nil {
		k.n.log.Info("state of a service could not be told", "service", s.ID, "status", r.Status, "error", err)
	}
}

// keep starts a service and restarts it when it ends, until it is no longer wanted or
// has ended too often.
func (k *keeper) keep(ctx context.Context, s place.RuntimeService) {
	n := k.n
	last := context.WithoutCancel(ctx)
	ref := runlog.Ref(s.Company, serviceLogs, s.ID)
	stopped := func(restarts int64) {
		k.report(last, s, place.ReportService{Status: place.ServiceStopped, Health: "unknown", Error: k.whyOver(ctx, s),
			Restarts: restarts, LogRef: ref})
	}
	failed := func(why string, restarts int64) {
		if ctx.Err() != nil || k.whyOver(ctx, s) != "" {
			stopped(restarts)
			return
		}
		k.report(last, s, place.ReportService{Status: place.ServiceFailed, Health: "unhealthy", Error: why,
			Restarts: restarts, LogRef: ref})
	}
	log, err := n.work.logs.Create(ref)
	if err != nil {
		failed(err.Error(), 0)
		return
	}
	defer log.Close()
	p, err := k.place(s.Company, s.Place)
	if err != nil {
		failed(err.Error(), 0)
		return
	}
	env, secrets, err := n.spaceEnv(ctx, p.run, p.f, string(s.Issue), "")
	if err != nil {
		failed(err.Error(), 0)
		return
	}
	if line := p.l.RuntimeProvision; line != "" && p.w.ID != "" {
		done, err := n.work.turns.take(ctx, p.f.Dir)
		if err == nil {
			err = n.carryOutIn(ctx, spaceCommand{w: p.w, f: p.f, phase: place.OperationProvision,
				name: "runtimeProvisionCommand", line: line,
				env: env, secrets: secrets, authority: n.authorityWhile(s.Over)})
			done()
		}
		if err != nil {
			failed(err.Error(), 0)
			return
		}
	}
	var restarts int64
	for pause := serviceFirst; ; pause = min(2*pause, serviceMost) {
		began := time.Now()
		why := k.once(ctx, s, p, env, secrets, log, ref, restarts)
		if ctx.Err() != nil || k.whyOver(ctx, s) != "" {
			break
		}
		if time.Since(began) > serviceSteady {
			restarts, pause = 0, serviceFirst
		}
		if restarts++; restarts > serviceRestarts {
			failed(why, restarts-1)
			return
		}
		log.Write("system", fmt.Sprintf("[selvage] %s; it is started again in %s\n", why, pause))
		k.report(last, s, place.ReportService{Status: place.ServiceStarting, Health: "unhealthy", Error: why,
			Restarts: restarts, LogRef: ref})
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			continue
		}
		break
	}
	stopped(restarts)
}

// whyOver returns why a wanted service may no longer run, or "".
func (k *keeper) whyOver(ctx context.Context, s place.RuntimeService) string {
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return cause.Error()
	}
	why := company.Denial("")
	if err := k.n.ledger.View(func(tx *ledger.Tx) error { why = s.Over(tx); return nil }); err != nil {
		return err.Error()
	}
	if why != "" {
		return place.ServiceDenial(why)
	}
	if !k.n.work.worker.Holds() {
		return "The node of this service lost its lease"
	}
	return ""
}

// once runs a service until it ends and returns why it did.
func (k *keeper) once(ctx context.Context, s place.RuntimeService, p spacePlace, env map[string]string,
	secrets []string, log *runlog.Writer, ref string, restarts int64) string {
	d := s.Declared()
	port := d.Port.Number
	if d.Port.Auto {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "no port is free: " + err.Error()
		}
		port = int64(l.Addr().(*net.TCPAddr).Port)
		l.Close()
	}
	vars := map[string]string{}
	for key, v := range env {
		vars[key] = v
	}
	fill := strings.NewReplacer("{{port}}", strconv.FormatInt(port, 10), "${PORT}", strconv.FormatInt(port, 10),
		"{{workspace.cwd}}", p.f.Dir)
	for key, v := range d.Env {
		vars[key] = fill.Replace(v)
	}
	if port > 0 {
		key := d.Port.EnvKey
		if key == "" {
			key = "PORT"
		}
		vars[key] = strconv.FormatInt(port, 10)
	}
	url := fill.Replace(d.Expose.URL)
	if url == "" && port > 0 {
		url = fmt.Sprintf("http://127.0.0.1:%d", port)
	}
	dir := filepath.Join(p.f.Dir, d.Cwd)
	now := place.ReportService{Status: place.ServiceStarting, Health: "unknown", Port: port, URL: url, Restarts: restarts,
		Cwd: dir, LogRef: ref}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	why := "" // it must stop
	started := make(chan int, 1)
	ended := make(chan process.ShellEnd, 1)
	go func() {
		ended <- k.n.shell().Run(ctx, process.ShellCommand{Line: d.Command, Folder: p.f, Dir: dir, Env: vars,
			Secrets: secrets, Grace: commandGrace,
			Authority: k.n.authorityWhile(s.Over), Log: log.Write, Started: func(pid int) { started <- pid }})
	}()
	select {
	case pid := <-started:
		now.PID = int64(pid)
		shown := k.n.work.host.Adopt(kernel.Entry{Kind: kernel.KindService, Name: s.Name, Company: string(s.Company),
			Run: string(s.StartedByRun), Machine: pid, Restarts: int(restarts),
			Declared: s.ID, Role: kernel.RoleService}, func(string) { stop() })
		defer func() { shown.Ended(kernel.ExitOf(serviceExit(why), why)) }()
	case end := <-ended:
		return "the service could not be started: " + end.Error
	}
	k.report(ctx, s, now)
	check := readiness(d, fill.Replace(d.Readiness.URL), url, port)
	over := make(chan struct{})
	go func() {
		defer close(over)
		why = k.attend(ctx, s, now, d, check)
		if why != "" {
			stop()
		}
	}()
	end := <-ended
	stop()
	<-over
	switch {
	case why != "":
	case end.Error == "":
		why = "the service ended by itself"
	default:
		why = "the service ended: " + end.Error
	}
	return why
}

// serviceExit is the exit code of a service in the table of processes: a service that ends
// has failed unless it was stopped.
func serviceExit(why string) int {
	if why == "" {
		return kernel.ExitOK
	}
	return 1
}

// attend waits until a service is ready, and then checks its health. It returns why the
// service must stop, or "" when ctx ended.
func (k *keeper) attend(ctx context.Context, s place.RuntimeService, now place.ReportService, d place.DeclaredCommand,
	check func(context.Context) error) string {
	limit, interval := time.Duration(d.Readiness.Timeout)*time.Second, time.Duration(d.Readiness.Interval)*time.Millisecond
	if limit <= 0 {
		limit = serviceReady
	}
	interval = min(max(interval, 100*time.Millisecond), 10*time.Second)
	deadline := time.Now().Add(limit)
	wait := func(d time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	for {
		err := check(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return ""
		}
		if time.Now().After(deadline) {
			return fmt.Sprintf("the service was not ready after %s: %v", limit, err)
		}
		if !wait(interval) {
			return ""
		}
	}
	now.Status, now.Health = place.ServiceRunning, "healthy"
	k.report(ctx, s, now)
	for wait(serviceHealth) {
		health, why := "healthy", ""
		if err := check(ctx); err != nil {
			health, why = "unhealthy", err.Error()
		}
		if ctx.Err() == nil && health != now.Health {
			now.Health, now.Error = health, why
			k.report(ctx, s, now)
		}
	}
	return ""
}

// readiness returns the check of a service: HTTP if an address is declared, a connection
// if there is a port, else nothing.
func readiness(d place.DeclaredCommand, address, url string, port int64) func(context.Context) error {
	switch {
	case d.Readiness.Type == "none" || d.Readiness.Type != "http" && port == 0:
		return func(context.Context) error { return nil }
	case d.Readiness.Type == "http":
		if address == "" {
			address = url
		}
		client := &http.Client{Timeout: serviceAsk, CheckRedirect: func(*http.Request,
			[]*http.Request) error {
			return http.ErrUseLastResponse
		}}
		return func(ctx context.Context) error {
			q, err := http.NewRequestWithContext(ctx, "GET", address, nil)
			if err != nil {
				return err
			}
			a, err := client.Do(q)
			if err != nil {
				return err
			}
			defer a.Body.Close()
			_, _ = io.CopyN(io.Discard, a.Body, 64<<10)
			if a.StatusCode >= 400 {
				return fmt.Errorf("%s answers %d", address, a.StatusCode)
			}
			return nil
		}
	}
	return func(ctx context.Context) error {
		c, err := (&net.Dialer{Timeout: serviceAsk}).DialContext(ctx, "tcp",
			net.JoinHostPort("127.0.0.1", strconv.FormatInt(port, 10)))
		if err != nil {
			return err
		}
		return c.Close()
	}
}
