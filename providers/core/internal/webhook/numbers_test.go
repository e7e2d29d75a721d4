package webhook

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// numberFields lists each number of the specs that this package validates: values that are rejected, or why all are accepted.
func numberFields() map[string]object.Number {
	return map[string]object.Number{
		"ExtensionConfig.clientConfig.service.port":                                           {Rejected: []any{-1, 0, 65536, math.MaxInt32}, Accepted: []any{1, 65535}},
		"IPAddress.prefix":                                                                    {Rejected: []any{-1, 129, math.MaxInt64}, Accepted: []any{0, 128}},
		"MachineDeployment.replicas":                                                          {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"MachineDeployment.revisionHistoryLimit":                                              {Rejected: []any{-1, math.MinInt32}, Accepted: []any{0, math.MaxInt32}},
		"MachineDeployment.minReadySeconds":                                                   {Accepted: []any{-1, math.MaxInt32}, Because: "a negative number counts as zero"},
		"MachineDeployment.progressDeadlineSeconds":                                           {Accepted: []any{-1}, Because: "it is not used"},
		"MachineDeployment.rolloutAfter":                                                      {Because: "any time is compared"},
		"MachineDeployment.strategy.remediation.maxInFlight":                                  {Rejected: bad(), Accepted: good()},
		"MachineDeployment.strategy.rollingUpdate.maxSurge":                                   {Rejected: bad(), Accepted: good()},
		"MachineDeployment.strategy.rollingUpdate.maxUnavailable":                             {Rejected: bad(), Accepted: good()},
		"MachineSet.replicas":                                                                 {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"MachineSet.minReadySeconds":                                                          {Accepted: []any{-1, math.MaxInt32}, Because: "a negative number counts as zero"},
		"MachinePool.replicas":                                                                {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"MachinePool.minReadySeconds":                                                         {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"MachineHealthCheck.maxUnhealthy":                                                     {Rejected: bad(), Accepted: []any{0, math.MaxInt32, "0%", "300%"}},
		"MachineHealthCheck.nodeStartupTimeout":                                               {Rejected: []any{-time.Second, time.Second}, Accepted: []any{time.Duration(0), time.Duration(math.MaxInt64)}},
		"MachineHealthCheck.unhealthyConditions[].timeout":                                    {Rejected: []any{-time.Second}, Accepted: []any{time.Duration(0), time.Duration(math.MaxInt64)}},
		"Cluster.controlPlaneEndpoint.port":                                                   {Rejected: []any{-1, 65536, math.MaxInt32}, Accepted: []any{0, 65535}},
		"Cluster.clusterNetwork.apiServerPort":                                                {Rejected: []any{-1, 65536}, Accepted: []any{0, 65535}},
		"Cluster.topology.rolloutAfter":                                                       {Because: "any time is compared"},
		"Cluster.topology.controlPlane.rollout.after":                                         {Because: "any time is compared"},
		"Cluster.topology.workers.machineDeployments[].rollout.after":                         {Because: "any time is compared"},
		"MachineHealthCheck.unhealthyMachineConditions[].timeout":                             {Rejected: []any{-time.Second}, Accepted: []any{time.Duration(0), time.Duration(math.MaxInt64)}},
		"Cluster.topology.controlPlane.replicas":                                              {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"Cluster.topology.workers.machineDeployments[].replicas":                              {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"Cluster.topology.workers.machineDeployments[].minReadySeconds":                       {Accepted: []any{-1}, Because: "a negative number counts as zero"},
		"Cluster.topology.workers.machineDeployments[].strategy.remediation.maxInFlight":      {Rejected: bad(), Accepted: good()},
		"Cluster.topology.workers.machineDeployments[].strategy.rollingUpdate.maxSurge":       {Rejected: bad(), Accepted: good()},
		"Cluster.topology.workers.machineDeployments[].strategy.rollingUpdate.maxUnavailable": {Rejected: bad(), Accepted: good()},
		"Cluster.topology.workers.machinePools[].replicas":                                    {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"Cluster.topology.workers.machinePools[].minReadySeconds":                             {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
		"ClusterClass.workers.machineDeployments[].minReadySeconds":                           {Accepted: []any{-1}, Because: "a negative number counts as zero"},
		"ClusterClass.workers.machineDeployments[].strategy.remediation.maxInFlight":          {Rejected: bad(), Accepted: good()},
		"ClusterClass.workers.machineDeployments[].strategy.rollingUpdate.maxSurge":           {Rejected: bad(), Accepted: good()},
		"ClusterClass.workers.machineDeployments[].strategy.rollingUpdate.maxUnavailable":     {Rejected: bad(), Accepted: good()},
		"ClusterClass.workers.machinePools[].minReadySeconds":                                 {Rejected: []any{-1}, Accepted: []any{0, math.MaxInt32}},
	}
}

// elsewhere are parts of specs whose numbers other tests cover, by their last element.
func elsewhere() map[string]string {
	return map[string]string{
		"machineHealthCheck":      "check.HealthCheck is called for each of them; the fields are those of MachineHealthCheck",
		"openAPIV3Schema":         "the API server validates the schemas of variables, see package variables",
		"nodeDrainTimeout":        "a negative timeout counts as none",
		"nodeVolumeDetachTimeout": "a negative timeout counts as none",
		"nodeDeletionTimeout":     "a negative timeout has passed",
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
	history := func(n int32) func(*clusterv1.MachineDeployment) {
		return func(md *clusterv1.MachineDeployment) { md.Spec.RevisionHistoryLimit = ptr.To(n) }
	}
	replicas := func(n int32) func(*clusterv1.MachinePool) {
		return func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To(n) }
	}
	for _, tc := range []struct {
		reason string
		errs   field.ErrorList
		want   int
	}{
		{"a stored value is kept", validateMachineDeployment(deployment(history(-1)), deployment(history(-1))), 0},
		{"a stored value is corrected", validateMachineDeployment(deployment(history(-1)), deployment(history(2))), 0},
		{"another invalid value is new", validateMachineDeployment(deployment(history(-1)), deployment(history(-2))), 1},
		{"a new object has no old value", validateMachineDeployment(nil, deployment(history(-1))), 1},
		{"OnDelete does not use the numbers of rolling updates", validateMachineDeployment(nil, deployment(func(md *clusterv1.MachineDeployment) {
			md.Spec.Strategy.RollingUpdate.MaxSurge, md.Spec.Strategy.Type = ptr.To(intstr.FromInt32(-1)), clusterv1.OnDeleteMachineDeploymentStrategyType
		})), 0},
		{"a stored value of a pool is kept", MachinePool{Enabled: true}.validate(pool(replicas(-1)), pool(replicas(-1))), 0},
		{"a new value of a pool is rejected", MachinePool{Enabled: true}.validate(pool(), pool(replicas(-1))), 1},
		{"a stored value of a set is kept", MachineSet{}.validate(machineSet(withReplicas(-1)), machineSet(withReplicas(-1))), 0},
		{"a new value of a set is rejected", MachineSet{}.validate(machineSet(), machineSet(withReplicas(-1))), 1},
		{"a stored value of a health check is kept", validateMachineHealthCheck(healthCheck(withStartupTimeout(time.Second)), healthCheck(withStartupTimeout(time.Second))), 0},
		{"a new value of a health check is rejected", validateMachineHealthCheck(healthCheck(), healthCheck(withStartupTimeout(time.Second))), 1},
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
	cluster := parse[clusterv1.Cluster](t, clusterWith("", `class: class, version: v1.30.0, workers: {machineDeployments: [{class: w, name: w, replicas: -3}]}`))
	if _, err := w.ValidateCreate(t.Context(), &cluster); !strings.Contains(text(err), "spec.topology.workers.machineDeployments[0].replicas: Invalid value: -3: must not be negative") {
		t.Errorf("a Cluster: %v", err)
	}
	classes, _ := newClassWebhook(t, "")
	class := defaultedClass(t, classes)
	class.Spec.Workers.MachineDeployments[0].Strategy = &clusterv1.MachineDeploymentStrategy{RollingUpdate: &clusterv1.MachineRollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromString("-10%"))}}
	if _, err := classes.ValidateCreate(t.Context(), class); !strings.Contains(text(err), `spec.workers.machineDeployments[0].strategy.rollingUpdate.maxSurge: Invalid value: "-10%": must not be negative`) {
		t.Errorf("a class: %v", err)
	}
}
