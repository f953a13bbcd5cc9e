package api

func readScrub(rc *Request) (Response, error) {
	s := rc.server
	if s.cfg.Operator.Scrubbed == nil {
		return Response{}, errNotHere
	}
	return OK(s.cfg.Operator.Scrubbed()), nil
}

func startScrub(rc *Request) (Response, error) {
	s := rc.server
	if s.cfg.Operator.Scrub == nil {
		return Response{}, errNotHere
	}
	s.log.Info("a scrub was asked for", "by", rc.Actor.ID)
	return OK(s.cfg.Operator.Scrub()), nil
}
