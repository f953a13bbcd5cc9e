// Package clock is the commands of the kernel's clock and of its registry: cron jobs, services.
package clock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

const (
	cronPath  = "/api/v1/cron"
	cronTable = "JOB=name CRON=cron ZONE=timezone NEXT=nextRunAt PAUSED=paused FIRED=fired TOPIC=topic " +
		"PROCESS=process.name"
)

// Commands returns the nouns of this package.
func Commands(c *cli.CLI) []*cobra.Command {
	cron := cli.Noun(c, "cron", "Publish to a topic, or start a process, at the times of a schedule", cronVerbs...)
	cron.AddCommand(addCron(c))
	service := cli.Noun(c, "service", "Services of the mesh: contracts, providers, calls and health", serviceVerbs...)
	service.AddCommand(registerService(c))
	return []*cobra.Command{cron, service}
}

// ofScope is the company of --company; without the flag a job is the mesh's.
var ofScope = cli.Field{Member: "companyId", Kind: "scope"}

// inScope is the same in the query of what has no body.
var inScope = cli.Field{Member: "companyId", Kind: "scope", Query: true}

// cronVerbs are the rows of selvage cron.
var cronVerbs = []cli.Verb{
	{Use: "list", Short: "List the cron jobs", Also: []string{"ls"}, Path: cronPath, Rows: "jobs", Columns: cronTable,
		Fields: []cli.Field{ofScope}},
	{Use: "show JOB", Short: "Show a cron job with its last firings", Path: cronPath + "/{1}",
		Fields: []cli.Field{ofScope}},
	{Use: "firings JOB", Short: "List the last firings of a cron job", Path: cronPath + "/{1}", Rows: "firings",
		Columns: "N=number DUE=due AT=at HEIGHT=height OK=ok RESULT=result", Fields: []cli.Field{ofScope}},
	{Use: "pause JOB", Short: "Pause a cron job: its times pass, and it does not fire", Method: "POST", Path: cronPath +
		"/{1}/pause", Says: "{name} is paused", Fields: []cli.Field{inScope}},
	{Use: "resume JOB", Short: "Let a paused cron job go on with its next time", Method: "POST", Path: cronPath +
		"/{1}/resume", Says: "{name} fires next at {nextRunAt}", Fields: []cli.Field{inScope}},
	{Use: "run JOB", Short: "Fire a cron job now; its next time stays", Method: "POST", Path: cronPath + "/{1}/run",
		Says: "{name} fired, {fired} times by now: see selvage cron firings {name}", Fields: []cli.Field{inScope}},
	{Use: "remove JOB", Short: "Remove a cron job, and end the process that it started", Also: []string{"rm"},
		Method: "DELETE", Path: cronPath + "/{1}", Says: "removed {1}", Fields: []cli.Field{inScope}},
}

// addCron adds a job, or changes it.
func addCron(c *cli.CLI) *cobra.Command {
	var zone, missed, busy, topic, text, payload, process, node, image string
	var replicas int64
	var paused bool
	cmd := &cobra.Command{Use: "add NAME CRON [flags] [-- COMMAND [ARG...]]",
		Short: "Add a cron job, or change the one of this name", Args: cobra.MinimumNArgs(2),
		Long: `Add a job that fires at the times of CRON, which has five fields: minute, hour, day of
the month, month, day of the week. At each time it publishes to a topic (--topic), or
starts a process: a command of a node, a container (--image), or what a JSON
specification says (--process). The mesh keeps the job and its next time, and its
leader fires it. Each time fires once, also when the leader dies at that moment.

A time that passed while no leader was there fires late: once for all of them, or each
with --missed all, at most 25. If the process of the last time still runs, this time is
skipped, or the process is replaced with --busy replace.`,
		Example: "  selvage cron add nightly '0 3 * * *' --timezone Europe/Berlin --topic reports.due\n" +
			"  selvage cron add backup '30 2 * * sun' -- /usr/local/bin/backup --all\n" +
			"  selvage cron add sync '*/15 * * * *' --company Acme --topic sync.due --json '{\"full\":false}'"}
	f := cmd.Flags()
	f.StringVar(&zone, "timezone", "", "time zone, such as Europe/Berlin (default UTC)")
	f.StringVar(&missed, "missed", "", "once (default) or all: how often times that were missed fire late")
	f.StringVar(&busy, "busy", "", "skip (default) or replace: what happens while the last process still runs")
	f.StringVar(&topic, "topic", "", "topic to which it publishes")
	f.StringVar(&text, "text", "", "what it publishes (default: JSON with job, number, due and missed)")
	f.StringVar(&payload, "json", "", "JSON that it publishes, instead of --text")
	f.StringVar(&process, "process", "", "JSON of what it starts, or @FILE: command, env, module, capabilities, …")
	f.StringVar(&node, "node", "", "the only node that may run its process (default: any)")
	f.StringVar(&image, "image", "", "image of the container that it starts")
	f.Int64Var(&replicas, "replicas", 1, "processes that it starts at a time")
	f.BoolVar(&paused, "paused", false, "add it paused")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, command := args[0], args[2:]
		body := map[string]any{"cron": args[1]}
		for key, v := range map[string]string{"timezone": zone, "missed": missed, "busy": busy, "topic": topic,
			"text": text} {
			if v != "" {
				body[key] = v
			}
		}
		if paused {
			body["paused"] = true
		}
		if payload != "" {
			if !json.Valid([]byte(payload)) {
				return cli.Misuse(errors.New("--json is not JSON"))
			}
			body["payload"] = json.RawMessage(payload)
		}
		starts, err := started(cmd, process, command, map[string]string{"node": node, "image": image})
		if err != nil {
			return err
		}
		switch {
		case (starts == nil) == (topic == ""):
			return cli.Misuse(errors.New("give --topic, or what to start: a command after --, --image, or --process"))
		case starts != nil:
			if cmd.Flags().Changed("replicas") {
				starts["replicas"] = replicas
			}
			body["process"] = starts
		}
		if c.Company != "" {
			if body["companyId"], err = c.CompanyID(cmd); err != nil {
				return err
			}
		}
		var j struct {
			Name string `json:"name"`
			Next string `json:"nextRunAt"`
		}
		return c.Send(cmd, "PUT", cronPath+"/"+url.PathEscape(name), body, &j,
			func(w io.Writer) { fmt.Fprintf(w, "%s fires next at %s\n", j.Name, j.Next) })
	}
	return cmd
}

// started returns what a job starts, nil for nothing.
func started(cmd *cobra.Command, spec string, command []string, more map[string]string) (map[string]any, error) {
	if spec == "" && len(command) == 0 && more["image"] == "" {
		return nil, nil
	}
	out := map[string]any{}
	if spec != "" {
		text, err := cli.TextOrFile(cmd, spec, cli.MaxTextFile)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return nil, cli.Misuse(fmt.Errorf("--process is not a JSON object: %w", err))
		}
	}
	if len(command) > 0 {
		out["command"] = command
	}
	for key, v := range more {
		if v != "" {
			out[key] = v
		}
	}
	return out, nil
}
