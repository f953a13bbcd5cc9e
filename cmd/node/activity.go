package main

import (
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
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

// inShort is what the details of a line of the log tell, in a few words: which tools
// were called and how it ended, what a thing is called, and from what to what it went.
func inShort(details any) string {
	o, _ := details.(map[string]any)
	var words []string
	add := func(word string) {
		if word != "" && word != "-" {
			words = append(words, word)
		}
	}
	if calls, _ := o["calls"].([]any); len(calls) > 0 {
		for _, call := range calls {
			add(member(call, "tool") + " " + member(call, "status"))
		}
		if n, _ := o["omitted"].(float64); n > 0 {
			add(strconv.Itoa(int(n)) + " more")
		}
		return cut(strings.Join(words, ", "), maxHappened)
	}
	for _, name := range []string{"identifier", "name", "title", "issueTitle", "key"} {
		add(member(o, name))
	}
	changes, _ := o["changes"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		switch from, to := member(changes[name], "from"), member(changes[name], "to"); {
		case name == "statusVersion" || strings.HasSuffix(name, "Id") || from == "…" || to == "…":
		default:
			add(name + " " + from + " → " + to)
		}
	}
	if len(changes) == 0 {
		add(member(o, "status"))
	}
	add(member(o, "bodySnippet"))
	return cut(strings.Join(words, " "), maxHappened)
}

var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*-[0-9]+$`)

// entityID returns the ID of what the log is asked for: an issue may be named as people do.
func (c *cli) entityID(cmd *cobra.Command, ref string) (string, error) {
	if !identifier.MatchString(ref) {
		return ref, nil
	}
	return c.issueID(cmd, ref)
}

// activityCommand lists what happened, by whom, under which run and when.
func activityCommand(c *cli) *cobra.Command {
	var agent, run, action, entity, from, to string
	var limit int
	cmd := &cobra.Command{
		Use: "activity", Short: "List what happened in a company, the newest first", Args: cobra.NoArgs,
		Example: `  selvage activity --agent Bob --from 2026-11-21T03:10:00Z --to 2026-11-21T03:20:00Z`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			q := url.Values{"limit": {strconv.Itoa(limit)}}
			if agent != "" {
				if agent, err = c.agentID(cmd, agent); err != nil {
					return err
				}
				q.Set("agentId", agent)
			}
			if run != "" {
				if run, err = c.runID(cmd, run); err != nil {
					return err
				}
				q.Set("runId", run)
			}
			if entity, err = c.entityID(cmd, entity); err != nil {
				return err
			}
			for name, v := range map[string]string{"action": action, "entityId": entity, "from": from, "to": to} {
				if v != "" {
					q.Set(name, v)
				}
			}
			names, err := c.agentNames(cmd, company)
			if err != nil {
				return err
			}
			var rows []activityRow
			return c.show(cmd, "/api/companies/"+company+"/activity?"+q.Encode(), &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					who, under := r.ActorType+" "+r.ActorID, "-"
					if r.AgentID != nil && names[*r.AgentID] != "" {
						who = names[*r.AgentID]
					}
					if r.RunID != nil {
						under = *r.RunID
					}
					t = append(t, []string{r.CreatedAt, who, r.Action, r.EntityType, r.EntityID, under, dash(inShort(r.Details))})
				}
				table(w, "TIME WHO ACTION ENTITY ID RUN WHAT", t)
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
