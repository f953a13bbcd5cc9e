package courier

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
	"github.com/selvage-mesh/selvage/sandbox"
)

// Attend has wake called whenever a process may have something to read. wake neither waits nor
// calls the courier.
func (c *Courier) Attend(pid kernel.PID, wake func()) error { return c.office.Attend(pid, wake) }

// Next takes the oldest message of a process, for a handler that is called with it: as programs
// read it. done says that it was handled, which acknowledges a reliable one. ok is false when there
// is none.
func (c *Courier) Next(pid kernel.PID) (body []byte, done func() error, ok bool) {
	for {
		got, err := c.takeSome(pid, 1)
		if err != nil || len(got) == 0 {
			return nil, nil, false
		}
		m := got[0]
		if body, err = json.Marshal(c.Shown(m)); err != nil || len(body) > sandbox.MaxHandled {
			c.office.Refuse(c.cfg.Wall(), pid, m, post.Fail(post.NotAllowed,
				"process %s is called with messages of at most %d bytes", pid, sandbox.MaxHandled))
			continue
		}
		return body, func() error {
			if !m.Reliable {
				return nil
			}
			return c.Ack(pid, m.ID)
		}, true
	}
}
