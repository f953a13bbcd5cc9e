package node

import (
	"context"
	"errors"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/sandbox"
)

// tools returns what the API signs and executes tools with; nil if this node has no
// sandbox.
func (n *Node) tools() *api.ToolBench {
	engine := n.work.sandbox
	if engine == nil {
		return nil
	}
	return &api.ToolBench{
		Mesh: string(n.Mesh()),
		Sign: func(s skill.ToolStatement) (string, []byte) { return string(n.ID()), s.Sign(n.keys) },
		Check: func(ctx context.Context, module []byte) error {
			m, err := engine.Load(ctx, module)
			if err != nil {
				return err
			}
			m.Close()
			return nil
		},
		Run: func(ctx context.Context, use skill.ToolUse, module []byte, call sandbox.Call) (sandbox.Result, error) {
			ctx, stop := n.whileMayAct(ctx, use.Over)
			defer stop()
			if ctx.Err() != nil {
				if why, ok := errors.AsType[*sandbox.Error](context.Cause(ctx)); ok {
					return sandbox.Result{Error: why}, nil
				}
				return sandbox.Result{}, api.Unavailable("This node may not act now")
			}
			m, err := engine.Load(ctx, module)
			if bad, ok := errors.AsType[*sandbox.Error](err); ok {
				return sandbox.Result{Error: bad}, nil
			}
			if err != nil {
				return sandbox.Result{}, err
			}
			defer m.Close()
			defer n.toolTimes.add(time.Now())
			return m.Run(ctx, call), nil
		},
	}
}
