package plan

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/fatih/color"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
)

// show writes the plan to the output, and the objects of its first round to the directory.
func (o *Options) show(ctx context.Context, plan *topologyplan.Plan) error {
	o.list("ClusterClasses", plan.ClusterClasses)
	o.list("Clusters", plan.Clusters)
	switch {
	case plan.Cluster == nil && len(plan.Clusters) == 0:
		return nil
	case plan.Cluster == nil:
		fmt.Fprintf(o.IO.Out, "Several Clusters are affected: use --cluster to plan the changes of one of them.\n")
		return nil
	case len(plan.Rounds) == 0:
		fmt.Fprintf(o.IO.Out, "No changes for Cluster %q.\n", plan.Cluster)
		return o.showWaiting(plan)
	}
	o.showChain(plan)
	first := plan.Rounds[0]
	if len(first.Changes) > 0 {
		fmt.Fprintf(o.IO.Out, "Changes for Cluster %q:\n", plan.Cluster)
		if err := o.table(first.Changes); err != nil {
			return err
		}
	}
	if err := o.showRollouts(plan); err != nil {
		return err
	}
	if o.Directory == "" && len(first.Changes) > 0 {
		o.IO.Infof("To get the objects and their differences as files, use --output-directory")
	}
	return o.write(ctx, first.Changes, o.IO.Out)
}

func (o *Options) list(kind string, keys []client.ObjectKey) {
	if len(keys) == 0 {
		fmt.Fprintf(o.IO.Out, "No %s will be affected by the changes.\n", kind)
		return
	}
	fmt.Fprintf(o.IO.Out, "The following %s will be affected by the changes:\n", kind)
	for _, key := range keys {
		fmt.Fprintf(o.IO.Out, " * %s\n", key)
	}
	fmt.Fprintln(o.IO.Out)
}

// showChain writes the versions of an upgrade that has intermediate ones.
func (o *Options) showChain(plan *topologyplan.Plan) {
	if len(plan.ControlPlaneUpgrades) < 2 && len(plan.WorkersUpgrades) < 2 {
		return
	}
	fmt.Fprintf(o.IO.Out, "The control plane is upgraded to: %s\n", strings.Join(plan.ControlPlaneUpgrades, ", "))
	if len(plan.WorkersUpgrades) > 0 {
		fmt.Fprintf(o.IO.Out, "Workers are upgraded to: %s\n", strings.Join(plan.WorkersUpgrades, ", "))
	}
	fmt.Fprintln(o.IO.Out)
}

// table writes the changes of objects.
func (o *Options) table(changes []topologyplan.Change) error {
	w := tabwriter.NewWriter(o.IO.ColoredOut(), 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "  NAMESPACE\tKIND\tNAME\tACTION")
	for _, c := range changes {
		u := c.Object()
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", iostreams.Clean(u.GetNamespace()), iostreams.Clean(u.GetKind()), iostreams.Clean(u.GetName()),
			o.colored(c.Action))
	}
	fmt.Fprintln(w)
	return w.Flush()
}

func (o *Options) colored(action topologyplan.Action) string {
	c := color.New(map[topologyplan.Action]color.Attribute{
		topologyplan.Created: color.FgGreen, topologyplan.Modified: color.FgYellow, topologyplan.Deleted: color.FgRed,
	}[action])
	if !o.IO.OutColor() {
		c.DisableColor()
	} else {
		c.EnableColor()
	}
	return c.Sprint(string(action))
}

// showRollouts writes which Machines are replaced, round by round, and what each round changes later.
func (o *Options) showRollouts(plan *topologyplan.Plan) error {
	out := o.IO.Out
	for i, round := range plan.Rounds {
		if i > 0 {
			fmt.Fprintf(out, "After that:\n")
			if err := o.table(round.Changes); err != nil {
				return err
			}
		}
		if len(round.Hooks) > 0 {
			fmt.Fprintf(out, "Lifecycle hooks that are called before, and may block: %s\n\n", strings.Join(round.Hooks, ", "))
		}
		for _, r := range round.Rollouts {
			o.showRollout(r)
		}
		switch {
		case i > 0 || len(round.Rollouts) > 0:
		case len(round.Changes) == 0:
			fmt.Fprintf(out, "Nothing changes until the rollouts that are in progress are complete.\n\n")
		default:
			fmt.Fprintf(out, "No Machines are replaced.\n\n")
		}
	}
	return o.showWaiting(plan)
}

func (o *Options) showRollout(r topologyplan.Rollout) {
	out := o.IO.Out
	switch {
	case r.Unknown:
		fmt.Fprintf(out, "Whether %s %s replaces its %d Machines is decided by its provider.\n", r.Kind, r.Name, r.Kept)
	default:
		fmt.Fprintf(out, "%s %s replaces %d of %d Machines:\n", r.Kind, r.Name, len(r.Machines), len(r.Machines)+r.Kept)
		for _, name := range r.Machines {
			fmt.Fprintf(out, "  %s\n", name)
		}
	}
	if r.Held != "" {
		fmt.Fprintf(out, "But not yet: %s.\n", r.Held)
	}
	fmt.Fprintf(out, "Because of: %s\n\n", strings.Join(r.Reasons, ", "))
}

func (o *Options) showWaiting(plan *topologyplan.Plan) error {
	if plan.Waiting != "" {
		fmt.Fprintf(o.IO.Out, "Not part of the plan: %s\n\n", plan.Waiting)
	}
	return nil
}
