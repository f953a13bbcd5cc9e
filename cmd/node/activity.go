package main

import (
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// activityRow is the part of a line of the activity log that the table shows.
type activityRow struct {
	ActorType  string  `json:"actorType"`
	ActorID    string  `json:"actorId"`
	AgentID    *string `json:"agentId"`
	Action     string  `json:"action"`
	EntityType string  `json:"entityType"`
	EntityID   string  `json:"entityId"`
	RunID      *string `json:"runId"`
	CreatedAt  string  `json:"createdAt"`
	Details    any     `json:"details"`
}

// activityCommand lists what happened, by whom, under which run and when.
func activityCommand(c *cli.CLI) *cobra.Command {
	var agent, run, action, entity, from, to string
	var limit int
	cmd := &cobra.Command{
		Use: "activity", Short: "List what happened in a company, the newest first", Args: cobra.NoArgs,
		Example: `  selvage activity --agent Bob --from 2026-11-21T03:10:00Z --to 2026-11-21T03:20:00Z`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			q := url.Values{"limit": {strconv.Itoa(limit)}}
			if agent != "" {
				if agent, err = c.AgentID(cmd, agent); err != nil {
					return err
				}
				q.Set("agentId", agent)
			}
			if run != "" {
				if run, err = c.RunID(cmd, run); err != nil {
					return err
				}
				q.Set("runId", run)
			}
			if entity, err = c.EntityID(cmd, entity); err != nil {
				return err
			}
			for name, v := range map[string]string{"action": action, "entityId": entity, "from": from, "to": to} {
				if v != "" {
					q.Set(name, v)
				}
			}
			names, err := c.AgentNames(cmd, company)
			if err != nil {
				return err
			}
			var rows []activityRow
			return c.Show(cmd, "/api/companies/"+company+"/activity?"+q.Encode(), &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					who, under := r.ActorType+" "+r.ActorID, "-"
					if r.AgentID != nil && names[*r.AgentID] != "" {
						who = names[*r.AgentID]
					}
					if r.RunID != nil {
						under = *r.RunID
					}
					t = append(t, []string{cli.When(w, r.CreatedAt), who, r.Action, r.EntityType, r.EntityID, under, cli.Dash(cli.InShort(r.Details))})
				}
				cli.Table(w, "TIME WHO ACTION ENTITY ID RUN WHAT", t)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "", "what this agent did; with --from also when its runs began and ended")
	f.StringVar(&run, "run", "", "what was done under this run")
	f.StringVar(&action, "action", "", "only this action, such as issue.updated")
	f.StringVar(&entity, "entity", "", "only what happened to this: an ID, or ACM-1")
	f.StringVar(&from, "from", "", "not before this time, such as 2026-11-21T03:10:00Z")
	f.StringVar(&to, "to", "", "not after this time")
	f.IntVar(&limit, "limit", 50, "at most so many, up to 500")
	return cmd
}
