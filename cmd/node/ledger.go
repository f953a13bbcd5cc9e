package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
)

// verified is the result of a verification, by a node or of a directory.
type verified struct {
	OK      bool   `json:"ok"`
	Height  uint64 `json:"height"`
	Entries uint64 `json:"entries"`
	Batches uint64 `json:"batches"`
	Bad     uint64 `json:"firstBadHeight,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func ledgerCommand(c *cli.CLI) *cobra.Command {
	var dir string
	verify := &cobra.Command{
		Use: "verify", Short: "Check every hash and signature of the chain again, from genesis", Args: cobra.NoArgs,
		Long: `Check every hash and signature of the chain again, from genesis: of the node at
--api, or with --dir of a data directory whose node is stopped. Names the first bad height.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var v verified
			far := c.Progress(cmd, "verifying the chain")
			defer far.End()
			if dir != "" {
				got, err := node.VerifyDir(cmd.Context(), dir)
				v = verified{OK: err == nil, Height: got.Position.Height, Entries: got.Entries, Batches: got.Batches}
				if broken, ok := ledger.IsBroken(err); ok {
					v.Bad, v.Reason = broken.Height, broken.Reason
				} else if err != nil {
					return err
				}
			} else if err := c.Call(context.WithoutCancel(cmd.Context()), "POST", "/api/v1/mesh/ledger/verify", map[string]any{},
				&v); err != nil {
				return err
			}
			far.End()
			if err := c.Print(cmd, v, func(w io.Writer) {
				if v.OK {
					fmt.Fprintf(w, "ok: %d entries in %d batches\n", v.Entries, v.Batches)
				}
			}); err != nil {
				return err
			}
			if !v.OK {
				return fmt.Errorf("the chain is damaged at height %d: %s", v.Bad, v.Reason)
			}
			return nil
		},
	}
	verify.Flags().StringVar(&dir, "dir", "", "data directory of a stopped node")
	var n int
	tail := &cobra.Command{
		Use: "tail", Short: "Print the newest entries of the chain", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 || n > 1000 {
				return cli.Misuse(errors.New("-n is 1 to 1000"))
			}
			var head struct {
				Height uint64 `json:"height"`
			}
			if err := c.Call(cmd.Context(), "GET", "/api/v1/mesh/ledger", nil, &head); err != nil {
				return err
			}
			after := max(head.Height, uint64(n)) - uint64(n)
			var rows []struct {
				Height  uint64              `json:"height"`
				Time    string              `json:"time"`
				Kind    string              `json:"kind"`
				Actor   struct{ ID string } `json:"actor"`
				Outcome string              `json:"outcome"`
				Hash    string              `json:"hash"`
			}
			return c.Show(cmd, fmt.Sprintf("/api/v1/mesh/ledger/entries?after=%d&limit=%d", after, n), &rows, func(w io.Writer) {
				var t [][]string
				for _, e := range rows {
					t = append(t, []string{strconv.FormatUint(e.Height, 10), cli.When(w, e.Time), e.Kind, cli.Short(e.Actor.ID),
						e.Outcome, cli.Short(e.Hash)})
				}
				cli.Table(w, "HEIGHT TIME KIND ACTOR OUTCOME HASH", t)
			})
		},
	}
	tail.Flags().IntVarP(&n, "lines", "n", 20, "how many")
	return cli.Group("ledger", "The hash chain", verify, tail)
}
