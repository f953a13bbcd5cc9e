package mesh

import "github.com/selvage-mesh/selvage/api"

func readScrub(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if s.Cfg.Operator.Scrubbed == nil {
		return api.Response{}, errNotHere
	}
	return api.OK(s.Cfg.Operator.Scrubbed()), nil
}

func startScrub(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if s.Cfg.Operator.Scrub == nil {
		return api.Response{}, errNotHere
	}
	s.Log.Info("a scrub was asked for", "by", rc.Actor.ID)
	return api.OK(s.Cfg.Operator.Scrub()), nil
}
