package apitest

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// What the flood may cost: how long one answer takes on a busy machine, how far
// the heap grows meanwhile, and what stays of it.
const FloodPatience = 2 * time.Minute

// Names reports whether a refusal says which field it is about.
func Names(body []byte, field string) bool {
	var e struct {
		Error   string
		Details json.RawMessage
	}
	if json.Unmarshal(body, &e) != nil {
		return false
	}
	return strings.Contains(e.Error, field) || bytes.Contains(e.Details, []byte(`"`+field+`"`))
}
