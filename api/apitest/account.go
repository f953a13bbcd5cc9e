package apitest

import (
	"time"

	"github.com/selvage-mesh/selvage/kit"
)

// Patient waits for what the feed brings about.
var Patient = kit.Wait{Most: Patience, Every: 5 * time.Millisecond}
