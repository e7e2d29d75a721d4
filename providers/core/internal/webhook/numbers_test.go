package webhook

import (
	"context"
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// numberFields lists each number of the specs that this package validates: values that are rejected, or why all are accepted. The schemas
// reject some of the others.
func numberFields() map[string]object.Number {
	const topology, class = "Cluster.topology.workers.", "ClusterClass.workers."
	all := map[string]object.Number{
		"ExtensionConfig.clientConfig.service.port":                                     {Rejected: []any{-1, 0, 65536, math.MaxInt32}, Accepted: []any{1, 65535}},
		"IPAddress.prefix":                                                              {Rejected: []any{-1, 129, math.MaxInt32}, Accepted: []any{0, 128}},
		"Machine.minReadySeconds":                                                       {Accepted: []any{-1}, Because: "a negative number counts as zero"},
		"MachineDeployment.replicas":                                                    {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"MachineDeployment.template.spec.minReadySeconds":                               {Accepted: []any{-1, math.MaxInt32}, Because: "a negative number counts as zero"},
		"MachineDeployment.rollout.after":                                               {Because: "any time is compared"},
		"MachineDeployment.remediation.maxInFlight":                                     {Rejected: bad(), Accepted: good()},
		"MachineDeployment.rollout.strategy.rollingUpdate.maxSurge":                     {Rejected: bad(), Accepted: good()},
		"MachineDeployment.rollout.strategy.rollingUpdate.maxUnavailable":               {Rejected: bad(), Accepted: good()},
		"MachineSet.replicas":                                                           {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"MachineSet.template.spec.minReadySeconds":                                      {Accepted: []any{-1, math.MaxInt32}, Because: "a negative number counts as zero"},
		"MachinePool.replicas":                                                          {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"MachinePool.template.spec.minReadySeconds":                                     {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"MachineHealthCheck.remediation.triggerIf.unhealthyLessThanOrEqualTo":           {Rejected: bad(), Accepted: []any{0, math.MaxInt32, "0%", "300%"}},
		"MachineHealthCheck.checks.nodeStartupTimeoutSeconds":                           {Rejected: []any{-1, 1}, Accepted: []any{0, math.MaxInt32}},
		"MachineHealthCheck.checks.unhealthyNodeConditions[].timeoutSeconds":            {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"MachineHealthCheck.checks.unhealthyMachineConditions[].timeoutSeconds":         {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"Cluster.controlPlaneEndpoint.port":                                             {Rejected: []any{-1, 65536, math.MaxInt32}, Accepted: []any{0, 65535}},
		"Cluster.clusterNetwork.apiServerPort":                                          {Rejected: []any{-1, 65536}, Accepted: []any{0, 65535}},
		"Cluster.topology.controlPlane.rollout.after":                                   {Because: "any time is compared"},
		"Cluster.topology.controlPlane.replicas":                                        {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		topology + "machineDeployments[].rollout.after":                                 {Because: "any time is compared"},
		topology + "machineDeployments[].replicas":                                      {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		topology + "machineDeployments[].minReadySeconds":                               {Accepted: []any{-1}, Because: "a negative number counts as zero"},
		topology + "machineDeployments[].healthCheck.remediation.maxInFlight":           {Rejected: bad(), Accepted: good()},
		topology + "machineDeployments[].rollout.strategy.rollingUpdate.maxSurge":       {Rejected: bad(), Accepted: good()},
		topology + "machineDeployments[].rollout.strategy.rollingUpdate.maxUnavailable": {Rejected: bad(), Accepted: good()},
		topology + "machinePools[].replicas":                                            {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		topology + "machinePools[].minReadySeconds":                                     {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		class + "machineDeployments[].minReadySeconds":                                  {Accepted: []any{-1}, Because: "a negative number counts as zero"},
		class + "machineDeployments[].healthCheck.remediation.maxInFlight":              {Rejected: bad(), Accepted: good()},
		class + "machineDeployments[].rollout.strategy.rollingUpdate.maxSurge":          {Rejected: bad(), Accepted: good()},
		class + "machineDeployments[].rollout.strategy.rollingUpdate.maxUnavailable":    {Rejected: bad(), Accepted: good()},
		class + "machinePools[].minReadySeconds":                                        {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
	}
	for _, at := range []string{"Cluster.topology.controlPlane", topology + "machineDeployments[]", "ClusterClass.controlPlane", class + "machineDeployments[]"} {
		for _, name := range []string{
			"checks.nodeStartupTimeoutSeconds", "checks.unhealthyNodeConditions[].timeoutSeconds",
			"checks.unhealthyMachineConditions[].timeoutSeconds", "remediation.triggerIf.unhealthyLessThanOrEqualTo",
		} {
			all[at+".healthCheck."+name] = object.Number{Because: "check.HealthCheck is called for each of them; the fields are those of MachineHealthCheck"}
		}
	}
	return all
}

// elsewhere are parts of specs whose numbers other tests cover, by their last element.
func elsewhere() map[string]string {
	return map[string]string{
		"openAPIV3Schema":                "the API server validates the schemas of variables, see package variables",
		"nodeDrainTimeoutSeconds":        "a negative timeout counts as none",
		"nodeVolumeDetachTimeoutSeconds": "a negative timeout counts as none",
		"nodeDeletionTimeoutSeconds":     "a negative timeout has passed",
	}
}

func bad() []any {
	return []any{-1, math.MinInt32, "-10%", "-9223372036854775807%", "99999999999999999999%", "1", "x%", ""}
}

func good() []any { return []any{0, 1, math.MaxInt32, "0%", "300%", "9223372036854775807%"} }

// kinds returns an empty object of each kind, and the function that validates its numbers.
func kinds() map[string]object.Numbered {
	return map[string]object.Numbered{
		"ExtensionConfig": {New: func() any { return &runtimev1.ExtensionConfig{} }, Validate: func(o any) field.ErrorList {
			return ExtensionConfig{Enabled: true}.validate(context.Background(), nil, o.(*runtimev1.ExtensionConfig))
		}},
		"IPAddress": {New: func() any { return &ipamv1.IPAddress{} }, Validate: func(o any) field.ErrorList {
			return validateAddress(&o.(*ipamv1.IPAddress).Spec, field.NewPath("spec"))
		}},
		"IPAddressClaim":     {New: func() any { return &ipamv1.IPAddressClaim{} }, Validate: func(any) field.ErrorList { return nil }},
		"ClusterResourceSet": {New: func() any { return &addonsv1.ClusterResourceSet{} }, Validate: func(any) field.ErrorList { return nil }},
		"Cluster":            {New: func() any { return &clusterv1.Cluster{} }, Validate: func(o any) field.ErrorList { return clusterNumbers(o.(*clusterv1.Cluster)) }},
		"ClusterClass":       {New: func() any { return &clusterv1.ClusterClass{} }, Validate: func(o any) field.ErrorList { return classNumbers(o.(*clusterv1.ClusterClass)) }},
		"Machine":            {New: func() any { return &clusterv1.Machine{} }, Validate: func(any) field.ErrorList { return nil }},
		"MachineSet":         {New: func() any { return &clusterv1.MachineSet{} }, Validate: func(o any) field.ErrorList { return setNumbers(o.(*clusterv1.MachineSet)) }},
		"MachineDeployment":  {New: func() any { return &clusterv1.MachineDeployment{} }, Validate: func(o any) field.ErrorList { return deploymentNumbers(o.(*clusterv1.MachineDeployment)) }},
		"MachinePool":        {New: func() any { return &clusterv1.MachinePool{} }, Validate: func(o any) field.ErrorList { return poolNumbers(o.(*clusterv1.MachinePool)) }},
		"MachineHealthCheck": {New: func() any { return &clusterv1.MachineHealthCheck{} }, Validate: func(o any) field.ErrorList {
			return checkDefinition(o.(*clusterv1.MachineHealthCheck))
		}},
	}
}

// Every number of every kind is listed above.
func TestNumbers(t *testing.T) { object.CheckNumbers(t, numberFields(), elsewhere(), kinds()) }

func TestUnchangedNumbersDoNotPreventOtherChanges(t *testing.T) {
	surge := func(n int32) func(*clusterv1.MachineDeployment) {
		return func(md *clusterv1.MachineDeployment) {
			md.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(n))
		}
	}
	replicas := func(n int32) func(*clusterv1.MachinePool) {
		return func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To(n) }
	}
	for _, tc := range []struct {
		reason string
		errs   field.ErrorList
		want   int
	}{
		{"a stored value is kept", (MachineDeployment{}).validate(deployment(surge(-1)), deployment(surge(-1))), 0},
		{"a stored value is corrected", (MachineDeployment{}).validate(deployment(surge(-1)), deployment(surge(2))), 0},
		{"another invalid value is new", (MachineDeployment{}).validate(deployment(surge(-1)), deployment(surge(-2))), 1},
		{"a new object has no old value", (MachineDeployment{}).validate(nil, deployment(surge(-1))), 1},
		{"OnDelete does not use the numbers of rolling updates", (MachineDeployment{}).validate(nil, deployment(func(md *clusterv1.MachineDeployment) {
			md.Spec.Rollout.Strategy.RollingUpdate.MaxSurge, md.Spec.Rollout.Strategy.Type = ptr.To(intstr.FromInt32(-1)), clusterv1.OnDeleteMachineDeploymentStrategyType
		})), 0},
		{"a stored value of a pool is kept", MachinePool{Enabled: true}.validate(pool(replicas(-1)), pool(replicas(-1))), 0},
		{"a new value of a pool is rejected", MachinePool{Enabled: true}.validate(pool(), pool(replicas(-1))), 1},
		{"a stored value of a set is kept", MachineSet{}.validate(machineSet(withReplicas(-1)), machineSet(withReplicas(-1))), 0},
		{"a new value of a set is rejected", MachineSet{}.validate(machineSet(), machineSet(withReplicas(-1))), 1},
		{"a stored value of a health check is kept", validateMachineHealthCheck(healthCheck(withStartupTimeout(1)), healthCheck(withStartupTimeout(1))), 0},
		{"a new value of a health check is rejected", validateMachineHealthCheck(healthCheck(), healthCheck(withStartupTimeout(1))), 1},
		{"an element moved in a list", webhooks.WithoutOld(
			field.ErrorList{field.Invalid(field.NewPath("a").Index(10).Child("b"), -1, "")},
			field.ErrorList{field.Invalid(field.NewPath("a").Index(2).Child("b"), -1, "")}), 0},
	} {
		if len(tc.errs) != tc.want {
			t.Errorf("%s: %v", tc.reason, tc.errs)
		}
	}
}

// The webhooks of Clusters and classes validate the numbers.
func TestTopologyNumbersAreValidated(t *testing.T) {
	w := newWorld(t).webhook(t)
	cluster := parse[clusterv1.Cluster](t, clusterWith("", `classRef: {name: class}, version: v1.30.0, workers: {machineDeployments: [{class: w, name: w, replicas: -3}]}`))
	if _, err := w.ValidateCreate(t.Context(), &cluster); !strings.Contains(text(err), "spec.topology.workers.machineDeployments[0].replicas: Invalid value: -3: must not be negative") {
		t.Errorf("a Cluster: %v", err)
	}
	classes, _ := newClassWebhook(t, "")
	class := validClass(t)
	class.Spec.Workers.MachineDeployments[0].Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("-10%"))
	if _, err := classes.ValidateCreate(t.Context(), class); !strings.Contains(text(err), `spec.workers.machineDeployments[0].rollout.strategy.rollingUpdate.maxSurge: Invalid value: "-10%": must not be negative`) {
		t.Errorf("a class: %v", err)
	}
}
