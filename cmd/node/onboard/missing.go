package onboard

import (
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// Missing says what every node lacks to carry out an adapter, "" where one can, and how
// to get it.
func Missing(c *cli.CLI, cmd *cobra.Command, company, kind string) (missing, how string, err error) {
	var report struct {
		Status string
		Checks []adapter.Finding
	}
	if err := c.Call(cmd.Context(), http.MethodPost, "/api/companies/"+company+"/adapters/"+kind+"/test-environment",
		map[string]any{}, &report); err != nil {
		return "", "", err
	}
	if report.Status != "fail" {
		return "", "", nil
	}
	for _, f := range report.Checks {
		if f.Level == "error" {
			how = f.Hint
			if k, ok := adapter.Find(kind); ok && how == "" {
				how = k.Note
			}
			return f.Message, how, nil
		}
	}
	return "it can not be carried out", "selvage adapter test " + kind, nil
}

// Lacks says of each program's adapter that agents of a company run on, and that no node
// can carry out, what is missing and how to get it.
func Lacks(c *cli.CLI, cmd *cobra.Command, company string) (lines []string, err error) {
	var all []agent
	if err := c.Call(cmd.Context(), http.MethodGet, "/api/companies/"+company+"/agents", nil, &all); err != nil {
		return nil, err
	}
	for _, k := range adapter.Kinds() {
		if k.Program == "" || !slices.ContainsFunc(all, func(a agent) bool { return a.AdapterType == k.Type }) {
			continue
		}
		missing, how, err := Missing(c, cmd, company, k.Type)
		if err != nil {
			return nil, err
		}
		if missing != "" {
			lines = append(lines, k.Type+": "+missing+". To get it: "+how)
		}
	}
	return lines, nil
}
