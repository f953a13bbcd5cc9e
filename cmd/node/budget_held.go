package main

import (
	"io"

	"github.com/spf13/cobra"
)

type heldRow struct {
	ID        string `json:"id"`
	Agent     string `json:"agentId"`
	Node      string `json:"nodeName"`
	Amount    int64  `json:"amount"`
	Spent     int64  `json:"spent"`
	Held      int64  `json:"held"`
	Slice     bool   `json:"slice"`
	Lost      bool   `json:"lost"`
	Uncertain bool   `json:"uncertain"`
	Status    string `json:"status"`
	CreatedAt string `json:"createdAt"`
}

func (r heldRow) cells() []string {
	kind, status := "call", r.Status
	if r.Slice {
		kind = "slice"
	}
	switch {
	case r.Status != "open":
	case r.Uncertain:
		status = "uncertain"
	case r.Lost:
		status = "lost"
	}
	return []string{r.ID, kind, r.Agent, dash(r.Node), cents(r.Spent), cents(r.Held), status, r.CreatedAt}
}

const heldHeader = "ID KIND AGENT NODE SPENT HELD STATUS SINCE"

func budgetHeld(c *cli) *cobra.Command {
	var lost bool
	list := &cobra.Command{
		Use: "list", Short: "List the money that nodes have set aside for calls", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			path := "/api/companies/" + company + "/budgets/reservations"
			if lost {
				path += "?lost=true"
			}
			var rows []heldRow
			return c.show(cmd, path, &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, r.cells())
				}
				table(w, heldHeader, t)
			})
		},
	}
	list.Flags().BoolVar(&lost, "lost", false, "only what a lost node holds, or one that does not know what it spent")

	var spent int64
	var note string
	off := &cobra.Command{
		Use: "writeoff ID", Short: "Write off what a lost node holds", Args: cobra.ExactArgs(1),
		Long: `End what a lost node holds, so that it does not count against budgets any more.
All of it is booked as spent, unless --spent says how much was. When the node
comes back and tells after all, what it tells is not booked twice.`,
		Example: `  selvage budget held list --lost
  selvage budget held writeoff 0199c0de-… --spent 0`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := c.filled(cmd, "/api/companies/{company}/budgets/reservations/{1}/write-off", args)
			if err != nil {
				return err
			}
			body := map[string]any{}
			if cmd.Flags().Changed("spent") {
				body["spentCents"] = spent
			}
			if note != "" {
				body["note"] = note
			}
			var row heldRow
			return c.send(cmd, "POST", path, body, &row, func(w io.Writer) {
				table(w, heldHeader, [][]string{row.cells()})
			})
		},
	}
	off.Flags().Int64Var(&spent, "spent", 0, "cents of it that were spent (default: all)")
	off.Flags().StringVar(&note, "note", "", "why, for the record")
	return group("held", "Money that is set aside for calls under way", list, off)
}
