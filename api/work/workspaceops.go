package work

import (
	"errors"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// logQuery are the query parameters that select a part of a log.
var logQuery = []api.Param{{Name: "offset", Type: "integer", Doc: "bytes to skip"},
	{Name: "limitBytes", Type: "integer", Doc: "at most so many bytes"}}

// An operationLogPage is a part of the log of a workspace operation.
type operationLogPage struct {
	Operation string `json:"operationId"`
	logPage
}

// A logPage is a part of a log that a node stores.
type logPage struct {
	Store   core.NullText `json:"store"`
	Ref     core.NullText `json:"logRef"`
	Content string        `json:"content"`
	Next    *int64        `json:"nextOffset,omitempty"`
}

// readNodeLog reads the part of a log that the request asks for. what names the log in
// errors, such as "Run log". With live, a log that does not exist yet is empty.
func readNodeLog(s *api.Server, rc *api.Request, what string, on, store, ref core.NullText, live bool) (page logPage,
	err error) {
	if ref == "" || on == "" || s.Cfg.NodeLog == nil {
		return page, api.NotFound(what + " not found")
	}
	offset, err := rc.QueryInt64("offset", 0, 0, 1<<40)
	if err != nil {
		return page, err
	}
	limit, err := rc.QueryInt64("limitBytes", runlog.MaxRead, 1, runlog.MaxRead)
	if err != nil {
		return page, err
	}
	chunk, err := s.Cfg.NodeLog(rc.HTTP.Context(), identity.NodeID(on), string(ref), offset, limit)
	switch {
	case errors.Is(err, runlog.ErrNoLog) && live:
	case errors.Is(err, runlog.ErrNoLog):
		return page, api.NotFound(what + " not found")
	case err != nil:
		return page, api.Unavailable("The node that has this log does not answer; try again")
	}
	page = logPage{Store: store, Ref: ref, Content: string(chunk.Content)}
	if next := offset + int64(len(chunk.Content)); next < chunk.Size {
		page.Next = &next
	}
	return page, nil
}

func listWorkspaceOperations(rc *api.Request) (api.Response, error) {
	row, err := findWorkspace(rc)
	if err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) ([]place.WorkspaceOperation, error) {
		return place.OperationsOf(tx, row.Company, row.ID), nil
	})
}

func readOperationLog(rc *api.Request) (api.Response, error) {
	s := rc.Server
	var o place.WorkspaceOperation
	err := rc.View(func(tx *ledger.Tx) error {
		var ok bool
		if o, ok = place.OperationByID(tx, strings.ToLower(rc.Path("operationId"))); !ok || !api.Seen(tx, rc, o.Company) {
			return api.NotFound("Workspace operation not found")
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	page, err := readNodeLog(s, rc, "Workspace operation log", o.Node, o.LogStore, o.LogRef,
		o.Status == place.OperationRunning)
	return api.OK(operationLogPage{o.ID, page}), err
}
