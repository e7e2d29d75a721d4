package rolloutplan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
)

// maxReason is the maximum size of a reason, in bytes: reasons end up in annotations and status.
const maxReason = 480

// Effect is what a change does to a Cluster.
type Effect struct {
	Effect fleetv1.RolloutEffect
	// Machines is how many Machines are replaced.
	Machines int32
	// Reason is why the effect is Forbidden or Unknown, or what else may happen.
	Reason string
}

// Planner finds out what a change does to Clusters, one after the other or at the same time. Classes, templates and definitions are read
// once for all of them, and again after two minutes, or after Forget: call it when a plan begins, so that it has no older class.
type Planner struct {
	// Live is the management cluster, without a cache: the client of an apiversion.Boundary, as topologyplan requires.
	Live client.Client
	// ControlPlanes decide which Machines control planes replace, by their kind.
	ControlPlanes map[schema.GroupKind]topologyplan.Outdated
	// Dial connects to runtime extensions. Nil: to the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// UserAgent is sent to extensions.
	UserAgent string
	// Clock is the current time. Nil: the real one.
	Clock clock.PassiveClock
	// SkipExtensions leaves out the patches of runtime extensions.
	SkipExtensions bool

	once   sync.Once
	series *topologyplan.Series
	err    error
}

// Effect returns what a change does to a Cluster, which is as it was read from the management cluster, with managedFields. With force, it
// does not matter who else applies the fields of the change. Errors are temporary: the API server or an object is not ready, or the context
// has ended. Whatever else prevents a plan is the effect Forbidden or Unknown, so that it does not prevent those of other Clusters.
func (p *Planner) Effect(ctx context.Context, cluster *clusterv1.Cluster, change *fleetv1.RolloutChange, force bool) (Effect, error) {
	if Matches(change, cluster) {
		return Effect{Effect: fleetv1.RolloutUnchanged}, nil
	}
	if field, manager := owned(cluster, change); manager != "" && !force {
		return forbidden(fmt.Sprintf("%s is applied by %s, which would take the change back: change it there, or set spec.force",
			field, manager)), nil
	}
	series, err := p.planning()
	if err != nil {
		return Effect{}, err
	}
	after := cluster.DeepCopy()
	Apply(change, after)
	plan, err := series.Update(ctx, cluster, after)
	if err != nil {
		return failed(ctx, err)
	}
	return effectOf(plan), nil
}

// Forget makes the Planner read everything again.
func (p *Planner) Forget() {
	if series, err := p.planning(); err == nil {
		series.Forget()
	}
}

func (p *Planner) planning() (*topologyplan.Series, error) {
	p.once.Do(func() {
		if p.Clock == nil {
			p.Clock = clock.RealClock{}
		}
		p.series, p.err = topologyplan.NewSeries(topologyplan.Input{
			Live: p.Live, ControlPlanes: p.ControlPlanes, Dial: p.Dial, UserAgent: p.UserAgent, SkipExtensions: p.SkipExtensions,
		}, p.Clock)
	})
	return p.series, p.err
}

// effectOf returns the effect of a plan.
func effectOf(plan *topologyplan.Plan) Effect {
	machines, unknown, changes := sets.New[string](), []string{}, false
	for _, round := range plan.Rounds {
		changes = changes || len(round.Changes) > 0
		for _, r := range round.Rollouts {
			machines.Insert(r.Machines...)
			if r.Unknown {
				unknown = append(unknown, r.Kind+" "+r.Name)
			}
		}
	}
	e := Effect{Effect: fleetv1.RolloutUnchanged, Machines: int32(machines.Len())}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		e.Reason = shortened("whether Machines are replaced is decided by the provider of " + strings.Join(slices.Compact(unknown), ", "))
	}
	// The Cluster, or something of it, is paused, or in another change: what comes after that is not planned.
	if plan.Waiting != "" && e.Reason == "" {
		e.Reason = shortened("it waits: " + plan.Waiting)
	}
	switch {
	case machines.Len() > 0:
		e.Effect = fleetv1.RolloutReplacing
	case len(unknown) > 0, plan.Waiting != "" && !changes:
		e.Effect = fleetv1.RolloutUnknown
	case changes:
		e.Effect = fleetv1.RolloutInPlace
	}
	return e
}

// failed returns the effect for an error of the plan; the error if it is temporary.
func failed(ctx context.Context, err error) (Effect, error) {
	if ctx.Err() != nil {
		return Effect{}, ctx.Err()
	}
	refused, isRefused := errors.AsType[*topologyplan.RefusedError](err)
	class, isClass := errors.AsType[*topologyplan.ClassError](err)
	extension, isExtension := errors.AsType[*topologyplan.ExtensionError](err)
	switch {
	case isRefused:
		return forbidden(invalid(refused.Err)), nil
	case isClass && class.Missing:
		return forbidden(class.Error()), nil
	case isClass:
		return Effect{}, err // It will be reconciled soon.
	case isExtension:
		return unknown(extension.Error()), nil
	case apierrors.IsForbidden(err):
		return unknown("not permitted to read all objects of the Cluster: " + err.Error()), nil
	case temporary(err):
		return Effect{}, err
	}
	return unknown(err.Error()), nil
}

func forbidden(reason string) Effect {
	return Effect{Effect: fleetv1.RolloutForbidden, Reason: shortened(reason)}
}

func unknown(reason string) Effect {
	return Effect{Effect: fleetv1.RolloutUnknown, Reason: shortened(reason)}
}

// temporary reports whether an error is about the API server rather than about what was asked.
func temporary(err error) bool {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		code := status.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusUnauthorized ||
			code == http.StatusConflict || code == http.StatusGone
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// invalid returns what is wrong, without the kind and name of the Cluster.
func invalid(err error) string {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.Status().Details == nil {
		return err.Error()
	}
	var causes []string
	for _, c := range status.Status().Details.Causes {
		causes = append(causes, strings.TrimPrefix(c.Field+": "+c.Message, ": "))
	}
	if len(causes) == 0 {
		return err.Error()
	}
	return strings.Join(causes, "; ")
}

// shortened returns the beginning of a text that is too long.
func shortened(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + " ..."
}
