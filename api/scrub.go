package api

import "time"

// A ScrubState is how far a node is with reading all that it keeps, and what it found.
type ScrubState struct {
	EverySeconds int64          `json:"everySeconds" doc:"within what time all is read once; 0: only on demand"`
	Running      bool           `json:"running"`
	Demanded     bool           `json:"demanded" doc:"somebody asked for it, so it hurries"`
	Began        time.Time      `json:"began,omitzero" doc:"the scrub under way, or the last one"`
	Ended        *time.Time     `json:"ended,omitempty" doc:"the last one that read everything"`
	Rounds       uint64         `json:"rounds" doc:"that read everything, since the node was started"`
	Bytes        int64          `json:"bytes" doc:"read by this scrub"`
	TotalBytes   int64          `json:"totalBytes" doc:"that it has to read"`
	AllBytes     int64          `json:"-"` // read by all since the node was started
	Damaged      int            `json:"damaged" doc:"files that it found damaged"`
	Mended       int            `json:"mended" doc:"of those, put right with a peer's bytes"`
	AllDamaged   uint64         `json:"-"` // by all since the node was started
	Found        []ScrubFinding `json:"found" doc:"the first 100 of them"`
	Error        string         `json:"error,omitempty" doc:"why it broke off"`
}

// A ScrubFinding is a file that is damaged.
type ScrubFinding struct {
	What   string    `json:"what" doc:"store or blob"`
	File   string    `json:"file"`
	Mended bool      `json:"mended"`
	Error  string    `json:"error,omitempty"`
	At     time.Time `json:"at"`
}

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
