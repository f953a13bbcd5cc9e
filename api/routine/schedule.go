package routine

import (
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/scheduler"
)

// scheduledTime is a time at which a schedule fires, in UTC and in the schedule's time
// zone.
type scheduledTime struct {
	At    core.Time `json:"at"`
	Local string    `json:"local"`
}

const (
	previewTimes    = 10  // if the request has no count
	maxPreviewTimes = 100 // in one preview
)

func scheduleRoute(tag string) api.Route {
	return api.Route{Method: "GET", Path: "/api/v1/schedules/next", Tag: tag,
		Summary: "List the next times of a schedule, also of one that is not saved",
		Query: []api.Param{{Name: "cronExpression", Doc: "minute hour day month weekday"},
			{Name: "timezone", Doc: "whose clocks it goes by; UTC unless named"},
			{Name: "count", Type: "integer", Doc: "how many, 10 unless named"}}, Out: []scheduledTime{}, Handle: previewSchedule}
}

// previewSchedule answers fewer times than requested if the schedule has no more.
func previewSchedule(rc *api.Request) (api.Response, error) {
	count, err := rc.QueryInt("count", previewTimes, 1, maxPreviewTimes)
	if err != nil {
		return api.Response{}, err
	}
	cron, zone := rc.Query("cronExpression"), rc.Query("timezone")
	if zone == "" {
		zone = "UTC"
	}
	out := make([]scheduledTime, 0, count)
	for at := rc.Now(); len(out) < count; {
		next, err := scheduler.NextRun(cron, zone, at)
		if err != nil && len(out) == 0 {
			return api.Response{}, err
		}
		if err != nil {
			break
		}
		at = next.Std()
		clocks, err := time.LoadLocation(zone)
		if err != nil {
			return api.Response{}, err
		}
		out = append(out, scheduledTime{next, at.In(clocks).Format(time.RFC3339)})
	}
	return api.OK(out), nil
}
