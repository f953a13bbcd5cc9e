package run

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A callbackBody reports how the run of an agent behind a URL ended.
type callbackBody struct {
	Status  string          `json:"status" enum:"succeeded,failed"`
	Summary string          `json:"summary,omitempty" maxLength:"8192"`
	Error   string          `json:"error,omitempty" maxLength:"8192"`
	Result  json.RawMessage `json:"result,omitempty" maxBytes:"16384"`
	Usage   *callbackUsage  `json:"usage,omitempty"`
}

type callbackUsage struct {
	Input  int64 `json:"inputTokens" minimum:"0"`
	Output int64 `json:"outputTokens" minimum:"0"`
	Cached int64 `json:"cachedInputTokens,omitempty" minimum:"0"`
}

// callBack receives the end of a run from its agent, on any node.
func callBack(rc *api.Request) (api.Response, error) {
	in, err := api.Body[callbackBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	var r entity.Run
	if err := rc.View(func(tx *ledger.Tx) (err error) { r, err = api.FindRun(tx, rc); return err }); err != nil {
		return api.Response{}, err
	}
	p := company.Callback{Run: r.ID, Status: entity.RunStatus(in.Status), Summary: in.Summary, Error: in.Error,
		Result: in.Result}
	if u := in.Usage; u != nil {
		p.Usage = &entity.Usage{InputTokens: u.Input, OutputTokens: u.Output, CachedInputTokens: u.Cached}
	}
	row, err := api.Do[company.Callback](rc, company.KindRunCallback, r.Company, p)
	return api.OK(row), err
}
