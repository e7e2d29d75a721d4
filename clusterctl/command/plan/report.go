package plan

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
)

// report is a plan for programs. Fields are added, but neither renamed nor removed.
type report struct {
	// ClusterClasses and Clusters are those that the files affect, as namespace/name.
	ClusterClasses []string `json:"clusterClasses"`
	Clusters       []string `json:"clusters"`
	// Cluster is the planned one; empty if several are affected and none was chosen.
	Cluster string `json:"cluster,omitempty"`
	// Rounds follow each other: each begins when the rollouts of the one before are complete.
	Rounds []roundReport `json:"rounds"`
	// ControlPlaneUpgrades and WorkersUpgrades are the versions that they get one after the other.
	ControlPlaneUpgrades []string `json:"controlPlaneUpgrades,omitempty"`
	WorkersUpgrades      []string `json:"workersUpgrades,omitempty"`
	// Waiting is what does not happen after all rounds.
	Waiting string `json:"waiting,omitempty"`
}

type roundReport struct {
	// Hooks are lifecycle hooks that are called before the changes, and may block them.
	Hooks    []string        `json:"hooks,omitempty"`
	Changes  []changeReport  `json:"changes"`
	Rollouts []rolloutReport `json:"rollouts"`
}

type changeReport struct {
	Action     topologyplan.Action `json:"action"`
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Namespace  string              `json:"namespace"`
	Name       string              `json:"name"`
	// Fields are those that change.
	Fields []string `json:"fields,omitempty"`
}

type rolloutReport struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Machines are replaced, Kept is the number of the others.
	Machines []string `json:"machines"`
	Kept     int      `json:"kept"`
	Reasons  []string `json:"reasons"`
	// Unknown is true if the provider decides whether Machines are replaced.
	Unknown bool `json:"unknown,omitempty"`
	// Held is why no Machine is replaced until a user acts.
	Held string `json:"held,omitempty"`
}

// reportOf returns a plan for programs.
func reportOf(plan *topologyplan.Plan) report {
	r := report{
		ClusterClasses: keys(plan.ClusterClasses), Clusters: keys(plan.Clusters), Rounds: []roundReport{}, Waiting: plan.Waiting,
		ControlPlaneUpgrades: plan.ControlPlaneUpgrades, WorkersUpgrades: plan.WorkersUpgrades,
	}
	if plan.Cluster != nil {
		r.Cluster = plan.Cluster.String()
	}
	for _, round := range plan.Rounds {
		out := roundReport{Hooks: round.Hooks, Changes: []changeReport{}, Rollouts: []rolloutReport{}}
		for _, c := range round.Changes {
			u := c.Object()
			out.Changes = append(out.Changes, changeReport{
				Action: c.Action, APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Fields: c.Fields,
			})
		}
		for _, rollout := range round.Rollouts {
			out.Rollouts = append(out.Rollouts, rolloutReport{
				Kind: rollout.Kind, Name: rollout.Name, Machines: append([]string{}, rollout.Machines...), Kept: rollout.Kept,
				Reasons: append([]string{}, rollout.Reasons...), Unknown: rollout.Unknown, Held: rollout.Held,
			})
		}
		r.Rounds = append(r.Rounds, out)
	}
	return r
}

func keys(all []client.ObjectKey) []string {
	out := []string{}
	for _, key := range all {
		out = append(out, key.String())
	}
	return out
}

// print writes the plan as JSON or YAML.
func (o *Options) print(plan *topologyplan.Plan) error {
	return clusterflags.Print(o.IO.Out, o.Output, reportOf(plan))
}
