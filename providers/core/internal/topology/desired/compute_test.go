package desired

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
)

// input returns a Cluster with one MachineDeployment of class "worker".
func input(t *testing.T, change func(*clusterv1.Cluster, *clusterv1.ClusterClass)) Input {
	t.Helper()
	cluster := aCluster("c")
	cluster.Spec.Topology.Workers = clusterv1.WorkersTopology{MachineDeployments: []clusterv1.MachineDeploymentTopology{{Class: "worker", Name: "md"}}}
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "class"}}
	class.Spec.ControlPlane.MachineInfrastructure = clusterv1.ControlPlaneClassMachineInfrastructureTemplate{
		TemplateRef: clusterv1.ClusterClassTemplateReference{APIVersion: "test/v1", Kind: "MachineTemplate", Name: "cp-machine"},
	}
	class.Spec.Workers.MachineDeployments = []clusterv1.MachineDeploymentClass{{Class: "worker"}}
	if change != nil {
		change(cluster, class)
	}
	engine, err := patches.New(class, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Input{
		Cluster: cluster,
		Blueprint: &Blueprint{
			Class: class, Engine: engine, InfrastructureCluster: aTemplate("InfraTemplate", "infra", ""),
			ControlPlane: aTemplate("ControlPlaneTemplate", "cp", ""), ControlPlaneMachines: aTemplate("MachineTemplate", "cp-machine", ""),
			Workers: map[WorkersID]Templates{{MachineDeploymentKind, "worker"}: {Bootstrap: aTemplate("BootstrapTemplate", "b", ""), Infrastructure: aTemplate("MachineTemplate", "m", "")}},
		},
		Current:  &Current{Terminating: sets.New[string]()},
		Versions: upgrade.Plan{ControlPlane: "v1.30.0", MachineDeployments: upgrade.Sequence{Versions: map[string]string{"md": "v1.29.0"}}},
	}
}

func compute(t *testing.T, in Input) *Objects {
	t.Helper()
	objects, err := Compute(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestMachineDeployment(t *testing.T) {
	five, seven := int32(5), int32(7)
	minute := int32(60)
	zone := "zone"
	in := input(t, func(cluster *clusterv1.Cluster, class *clusterv1.ClusterClass) {
		of := &class.Spec.Workers.MachineDeployments[0]
		of.Metadata = clusterv1.ObjectMeta{Labels: map[string]string{"a": "class", "b": "class"}, Annotations: map[string]string{"x": "class"}}
		of.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Class"}}
		of.Taints = []clusterv1.MachineTaint{{Key: "class", Effect: "NoExecute", Propagation: clusterv1.MachineTaintPropagationAlways}}
		of.MinReadySeconds, of.Deletion.NodeDrainTimeoutSeconds, of.FailureDomain = &five, &minute, zone
		md := &cluster.Spec.Topology.Workers.MachineDeployments[0]
		md.Metadata = clusterv1.ObjectMeta{Labels: map[string]string{"b": "topology"}, Annotations: map[string]string{
			clusterv1.ClusterTopologyDeferUpgradeAnnotation: "", clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation: "",
		}}
		md.Replicas, md.MinReadySeconds = &five, &seven
		md.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Topology"}}
		md.Rollout.After = metav1.Unix(5, 0)
	})
	md := compute(t, in).Workers[0]
	labels := map[string]string{
		"a": "class", "b": "topology", clusterv1.ClusterNameLabel: "c", clusterv1.ClusterTopologyOwnedLabel: "",
		clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md",
	}
	version := "v1.29.0"
	want := &clusterv1.MachineDeployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "MachineDeployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: md.Deployment.Name, Labels: labels, Annotations: map[string]string{"x": "class"},
			Finalizers:      []string{clusterv1.MachineDeploymentTopologyFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "c", UID: "uid"}},
		},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "c", Replicas: &five, Rollout: clusterv1.MachineDeploymentRolloutSpec{After: metav1.Unix(5, 0)},
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{
				clusterv1.ClusterNameLabel: "c", clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md",
			}},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: labels, Annotations: map[string]string{"x": "class"}},
				Spec: clusterv1.MachineSpec{
					ClusterName: "c", Version: version, FailureDomain: zone, MinReadySeconds: &seven,
					ReadinessGates:    []clusterv1.MachineReadinessGate{{ConditionType: "Topology"}},
					Taints:            []clusterv1.MachineTaint{{Key: "class", Effect: "NoExecute", Propagation: clusterv1.MachineTaintPropagationAlways}},
					Deletion:          clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: &minute},
					Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "test", Kind: "BootstrapTemplate", Name: md.Bootstrap.GetName()}},
					InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "test", Kind: "MachineTemplate", Name: md.Infrastructure.GetName()},
				},
			},
		},
	}
	if diff := cmp.Diff(want, md.Deployment); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(compute(t, in), compute(t, in)); diff != "" {
		t.Errorf("computing twice differs:\n%s", diff)
	}
}

// TestNamesOfTerminatingObjects has a naming strategy without a random part, and an object that is being deleted with the name.
func TestNamesOfTerminatingObjects(t *testing.T) {
	template := "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}"
	poolTemplate := "{{ .cluster.name }}-{{ .machinePool.topologyName }}"
	for _, tt := range []struct {
		reason             string
		terminating        string
		deployments, pools []string // that wait
	}{
		{reason: "no name is taken", terminating: "c-x"},
		{reason: "that of the MachineDeployment", terminating: "c-md", deployments: []string{"md"}},
		{reason: "that of the MachinePool", terminating: "c-p", pools: []string{"p"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			in := input(t, func(cluster *clusterv1.Cluster, class *clusterv1.ClusterClass) {
				cluster.Spec.Topology.Workers.MachinePools = []clusterv1.MachinePoolTopology{{Class: "pool", Name: "p"}}
				class.Spec.Workers.MachineDeployments[0].Naming = clusterv1.MachineDeploymentClassNamingSpec{Template: template}
				class.Spec.Workers.MachinePools = []clusterv1.MachinePoolClass{{Class: "pool", Naming: clusterv1.MachinePoolClassNamingSpec{Template: poolTemplate}}}
			})
			in.Blueprint.Workers[WorkersID{MachinePoolKind, "pool"}] = in.Blueprint.Workers[WorkersID{MachineDeploymentKind, "worker"}]
			in.Versions.MachinePools.Versions = map[string]string{"p": "v1.29.0"}
			in.Current.Terminating.Insert(tt.terminating)
			got := compute(t, in)
			if diff := cmp.Diff([][]string{tt.deployments, tt.pools}, [][]string{got.DeploymentsWaiting, got.PoolsWaiting}); diff != "" {
				t.Errorf("waiting, -want +got:\n%s", diff)
			}
			created := map[string]int{}
			for _, w := range got.Workers {
				created[w.Kind()]++
			}
			if created[MachineDeploymentKind]+len(tt.deployments) != 1 || created[MachinePoolKind]+len(tt.pools) != 1 {
				t.Errorf("created workers: %v", created)
			}
		})
	}
}

func TestWorkersThatAreNotPlanned(t *testing.T) {
	in := input(t, nil)
	in.Versions.MachineDeployments.Versions = nil
	if got := compute(t, in).Workers; len(got) != 0 {
		t.Errorf("workers without a version are created: %v", got)
	}
	in = input(t, func(cluster *clusterv1.Cluster, _ *clusterv1.ClusterClass) {
		cluster.Spec.Topology.Workers.MachineDeployments[0].Class = "nowhere"
	})
	if _, err := Compute(t.Context(), in); err == nil || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("err = %v, want an error with the undefined class", err)
	}
}

func TestHealthChecks(t *testing.T) {
	yes, no := true, false
	unhealthy := func(status corev1.ConditionStatus) clusterv1.MachineHealthCheckChecks {
		return clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{{Type: "Ready", Status: status}}}
	}
	ofClass := clusterv1.MachineDeploymentClassHealthCheck{Checks: unhealthy("False")}
	limited := clusterv1.MachineDeploymentHealthCheckRemediation{MaxInFlight: new(intstr.FromInt32(1))}
	half := intstr.FromString("50%")
	own := clusterv1.MachineDeploymentTopologyHealthCheck{Checks: unhealthy("Unknown")}
	own.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = &half
	ownButOff := own
	ownButOff.Enabled = &no
	type healthCheck = clusterv1.MachineDeploymentTopologyHealthCheck
	cases := map[string]struct {
		reason   string
		class    clusterv1.MachineDeploymentClassHealthCheck
		topology healthCheck
		want     corev1.ConditionStatus
		limit    *intstr.IntOrString
	}{
		"None": {reason: "no definition, no check"},
		"Limits": {
			reason: "limits of remediations are none", class: clusterv1.MachineDeploymentClassHealthCheck{Remediation: limited},
			topology: healthCheck{Remediation: limited},
		},
		"Class":     {reason: "the class defines the check", class: ofClass, want: "False"},
		"Off":       {reason: "the topology disables the check", class: ofClass, topology: healthCheck{Enabled: &no}},
		"On":        {reason: "the topology enables the class's check", class: ofClass, topology: healthCheck{Enabled: &yes}, want: "False"},
		"Limited":   {reason: "a limit does not replace the class's check", class: ofClass, topology: healthCheck{Remediation: limited}, want: "False"},
		"Own":       {reason: "the topology's definition replaces all of the class's", class: ofClass, topology: own, want: "Unknown", limit: &half},
		"OwnButOff": {reason: "a disabled check is ignored even if it is defined", topology: ownButOff},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(t, func(cluster *clusterv1.Cluster, class *clusterv1.ClusterClass) {
				class.Spec.Workers.MachineDeployments[0].HealthCheck = tc.class
				cluster.Spec.Topology.Workers.MachineDeployments[0].HealthCheck = tc.topology
			})
			md := compute(t, in).Workers[0]
			if tc.want == "" || md.HealthCheck == nil {
				if (tc.want == "") != (md.HealthCheck == nil) {
					t.Errorf("%s: check = %v", tc.reason, md.HealthCheck)
				}
				return
			}
			selected := map[string]string{
				clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: md.TopologyName,
			}
			want := clusterv1.MachineHealthCheckSpec{
				ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: selected}, Checks: unhealthy(tc.want),
				Remediation: clusterv1.MachineHealthCheckRemediation{
					TriggerIf: clusterv1.MachineHealthCheckRemediationTriggerIf{UnhealthyLessThanOrEqualTo: tc.limit},
				},
			}
			want.Checks.NodeStartupTimeoutSeconds = new(int32(600))
			if diff := cmp.Diff(want, md.HealthCheck.Spec); diff != "" || md.HealthCheck.Name != md.Deployment.Name {
				t.Errorf("%s: name %q, -want +got:\n%s", tc.reason, md.HealthCheck.Name, diff)
			}
		})
	}
}

// TestStrategies: what a topology says about replacement, remediation and deletion of Machines replaces all that its class says.
func TestStrategies(t *testing.T) {
	one, two := intstr.FromInt32(1), intstr.FromInt32(2)
	class := func(of *clusterv1.MachineDeploymentClass) {
		of.Rollout.Strategy.RollingUpdate.MaxSurge = &two
		of.HealthCheck.Remediation.MaxInFlight = &two
		of.Deletion.Order = clusterv1.OldestMachineSetDeletionOrder
	}
	onDelete := clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}
	for _, tt := range []struct {
		reason   string
		topology func(*clusterv1.MachineDeploymentTopology)
		want     clusterv1.MachineDeploymentSpec
	}{
		{"the class's", func(*clusterv1.MachineDeploymentTopology) {}, clusterv1.MachineDeploymentSpec{
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
				RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: &two},
			}},
			Remediation: clusterv1.MachineDeploymentRemediationSpec{MaxInFlight: &two},
			Deletion:    clusterv1.MachineDeploymentDeletionSpec{Order: clusterv1.OldestMachineSetDeletionOrder},
		}},
		{"the topology's strategy", func(t *clusterv1.MachineDeploymentTopology) { t.Rollout.Strategy = onDelete },
			clusterv1.MachineDeploymentSpec{Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: onDelete}}},
		{"the topology's limit", func(t *clusterv1.MachineDeploymentTopology) { t.HealthCheck.Remediation.MaxInFlight = &one },
			clusterv1.MachineDeploymentSpec{Remediation: clusterv1.MachineDeploymentRemediationSpec{MaxInFlight: &one}}},
		{"the topology's order", func(t *clusterv1.MachineDeploymentTopology) {
			t.Deletion.Order = clusterv1.NewestMachineSetDeletionOrder
		},
			clusterv1.MachineDeploymentSpec{Deletion: clusterv1.MachineDeploymentDeletionSpec{Order: clusterv1.NewestMachineSetDeletionOrder}}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			in := input(t, func(cluster *clusterv1.Cluster, of *clusterv1.ClusterClass) {
				class(&of.Spec.Workers.MachineDeployments[0])
				tt.topology(&cluster.Spec.Topology.Workers.MachineDeployments[0])
			})
			spec := compute(t, in).Workers[0].Deployment.Spec
			got := clusterv1.MachineDeploymentSpec{Rollout: spec.Rollout, Remediation: spec.Remediation, Deletion: spec.Deletion}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
