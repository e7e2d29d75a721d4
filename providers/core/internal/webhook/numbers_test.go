package webhook

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// numberFields lists each number of the specs that this package validates: values that are rejected, or why all are accepted.
var numberFields = map[string]struct { // a constant table
	rejected []any
	accepted []any
	because  string
}{
	"MachineDeployment.replicas":                                                          {rejected: []any{-1}, accepted: []any{0, math.MaxInt32}},
	"MachineDeployment.revisionHistoryLimit":                                              {rejected: []any{-1, math.MinInt32}, accepted: []any{0, math.MaxInt32}},
	"MachineDeployment.minReadySeconds":                                                   {accepted: []any{-1, math.MaxInt32}, because: "a negative number counts as zero"},
	"MachineDeployment.progressDeadlineSeconds":                                           {accepted: []any{-1}, because: "it is not used"},
	"MachineDeployment.rolloutAfter":                                                      {because: "any time is compared"},
	"MachineDeployment.strategy.remediation.maxInFlight":                                  {rejected: bad(), accepted: good()},
	"MachineDeployment.strategy.rollingUpdate.maxSurge":                                   {rejected: bad(), accepted: good()},
	"MachineDeployment.strategy.rollingUpdate.maxUnavailable":                             {rejected: bad(), accepted: good()},
	"MachineSet.replicas":                                                                 {rejected: []any{-1}, accepted: []any{0, math.MaxInt32}},
	"MachineSet.minReadySeconds":                                                          {accepted: []any{-1, math.MaxInt32}, because: "a negative number counts as zero"},
	"MachinePool.replicas":                                                                {rejected: []any{-1}, accepted: []any{0, math.MaxInt32}},
	"MachinePool.minReadySeconds":                                                         {rejected: []any{-1}, accepted: []any{0, math.MaxInt32}},
	"MachineHealthCheck.maxUnhealthy":                                                     {rejected: bad(), accepted: []any{0, math.MaxInt32, "0%", "300%"}},
	"MachineHealthCheck.nodeStartupTimeout":                                               {rejected: []any{-time.Second, time.Second}, accepted: []any{time.Duration(0), time.Duration(math.MaxInt64)}},
	"MachineHealthCheck.unhealthyConditions[].timeout":                                    {rejected: []any{-time.Second}, accepted: []any{time.Duration(0), time.Duration(math.MaxInt64)}},
	"Cluster.controlPlaneEndpoint.port":                                                   {rejected: []any{-1, 65536, math.MaxInt32}, accepted: []any{0, 65535}},
	"Cluster.clusterNetwork.apiServerPort":                                                {rejected: []any{-1, 65536}, accepted: []any{0, 65535}},
	"Cluster.topology.rolloutAfter":                                                       {because: "any time is compared"},
	"Cluster.topology.controlPlane.replicas":                                              {rejected: []any{-1}, accepted: []any{0, math.MaxInt32}},
	"Cluster.topology.workers.machineDeployments[].replicas":                              {rejected: []any{-1}, accepted: []any{0, math.MaxInt32}},
	"Cluster.topology.workers.machineDeployments[].minReadySeconds":                       {accepted: []any{-1}, because: "a negative number counts as zero"},
	"Cluster.topology.workers.machineDeployments[].strategy.remediation.maxInFlight":      {rejected: bad(), accepted: good()},
	"Cluster.topology.workers.machineDeployments[].strategy.rollingUpdate.maxSurge":       {rejected: bad(), accepted: good()},
	"Cluster.topology.workers.machineDeployments[].strategy.rollingUpdate.maxUnavailable": {rejected: bad(), accepted: good()},
	"Cluster.topology.workers.machinePools[].replicas":                                    {rejected: []any{-1}, accepted: []any{0, math.MaxInt32}},
	"Cluster.topology.workers.machinePools[].minReadySeconds":                             {rejected: []any{-1}, accepted: []any{0, math.MaxInt32}},
	"ClusterClass.workers.machineDeployments[].minReadySeconds":                           {accepted: []any{-1}, because: "a negative number counts as zero"},
	"ClusterClass.workers.machineDeployments[].strategy.remediation.maxInFlight":          {rejected: bad(), accepted: good()},
	"ClusterClass.workers.machineDeployments[].strategy.rollingUpdate.maxSurge":           {rejected: bad(), accepted: good()},
	"ClusterClass.workers.machineDeployments[].strategy.rollingUpdate.maxUnavailable":     {rejected: bad(), accepted: good()},
	"ClusterClass.workers.machinePools[].minReadySeconds":                                 {rejected: []any{-1}, accepted: []any{0, math.MaxInt32}},
}

// elsewhere are parts of specs whose numbers other tests cover, by their last element.
var elsewhere = map[string]string{ // a constant table
	"machineHealthCheck":      "check.HealthCheck is called for each of them; the fields are those of MachineHealthCheck",
	"openAPIV3Schema":         "the API server validates the schemas of variables, see package variables",
	"nodeDrainTimeout":        "a negative timeout counts as none",
	"nodeVolumeDetachTimeout": "a negative timeout counts as none",
	"nodeDeletionTimeout":     "a negative timeout has passed",
}

func bad() []any {
	return []any{-1, math.MinInt32, "-10%", "-9223372036854775807%", "99999999999999999999%", "1", "x%", ""}
}

func good() []any { return []any{0, 1, math.MaxInt32, "0%", "300%", "9223372036854775807%"} }

// kinds returns an empty object of each kind, and the function that validates its numbers.
func kinds() map[string]struct {
	new      func() any
	validate func(any) field.ErrorList
} {
	type kind = struct {
		new      func() any
		validate func(any) field.ErrorList
	}
	return map[string]kind{
		"Cluster":           {func() any { return &clusterv1.Cluster{} }, func(o any) field.ErrorList { return clusterNumbers(o.(*clusterv1.Cluster)) }},
		"ClusterClass":      {func() any { return &clusterv1.ClusterClass{} }, func(o any) field.ErrorList { return classNumbers(o.(*clusterv1.ClusterClass)) }},
		"Machine":           {func() any { return &clusterv1.Machine{} }, func(any) field.ErrorList { return nil }},
		"MachineSet":        {func() any { return &clusterv1.MachineSet{} }, func(o any) field.ErrorList { return setNumbers(o.(*clusterv1.MachineSet)) }},
		"MachineDeployment": {func() any { return &clusterv1.MachineDeployment{} }, func(o any) field.ErrorList { return deploymentNumbers(o.(*clusterv1.MachineDeployment)) }},
		"MachinePool":       {func() any { return &clusterv1.MachinePool{} }, func(o any) field.ErrorList { return poolNumbers(o.(*clusterv1.MachinePool)) }},
		"MachineHealthCheck": {func() any { return &clusterv1.MachineHealthCheck{} }, func(o any) field.ErrorList {
			return checkDefinition(o.(*clusterv1.MachineHealthCheck))
		}},
	}
}

// Every number of every kind is listed above, and is treated as it says: a new field cannot be forgotten.
func TestNumbers(t *testing.T) {
	unseen := map[string]bool{}
	for name := range numberFields {
		unseen[name] = true
	}
	for name, kind := range kinds() {
		for _, path := range numbersIn(reflect.TypeOf(kind.new()).Elem().Field(2).Type, nil) {
			full := name + "." + strings.ReplaceAll(strings.Join(path, "."), ".[]", "[]")
			rule, known := numberFields[full]
			if !known {
				t.Errorf("%s is not in the table: decide which values are rejected", full)
				continue
			}
			delete(unseen, full)
			for _, value := range rule.rejected {
				if errs := kind.validate(with(kind.new(), path, value)); !has(errs, path) {
					t.Errorf("%s: %v is accepted: %v", full, value, errs)
				}
			}
			for _, value := range rule.accepted {
				if errs := kind.validate(with(kind.new(), path, value)); has(errs, path) {
					t.Errorf("%s: %v is rejected: %v", full, value, errs)
				}
			}
		}
	}
	if len(unseen) > 0 {
		t.Errorf("fields of the table that do not exist: %v", unseen)
	}
}

func has(errs field.ErrorList, path []string) bool {
	want := "spec." + strings.ReplaceAll(strings.Join(path, "."), ".[]", "[0]")
	return slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Field == want })
}

// numbersIn returns the paths of all numbers, durations and times in a type.
func numbersIn(t reflect.Type, path []string) [][]string {
	if len(path) > 0 && elsewhere[path[len(path)-1]] != "" {
		return nil
	}
	switch t {
	case reflect.TypeFor[metav1.Duration](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[intstr.IntOrString]():
		return [][]string{path}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return numbersIn(t.Elem(), path)
	case reflect.Slice, reflect.Map:
		return numbersIn(t.Elem(), append(slices.Clone(path), "[]"))
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return [][]string{path}
	case reflect.Struct:
		var all [][]string
		for i := range t.NumField() {
			f := t.Field(i)
			at := slices.Clone(path)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				at = append(at, name)
			}
			all = append(all, numbersIn(f.Type, at)...)
		}
		return all
	}
	return nil
}

// with sets a number in the spec of an object. Lists on the way get one element.
func with(obj any, path []string, value any) any {
	v := reflect.ValueOf(obj).Elem().Field(2)
	for _, name := range path {
		v = filled(v)
		if name == "[]" {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			v = v.Index(0)
			continue
		}
		v = member(v, name)
	}
	v = filled(v)
	switch value := value.(type) {
	case int:
		if v.Type() == reflect.TypeFor[intstr.IntOrString]() {
			v.Set(reflect.ValueOf(intstr.FromInt32(int32(value))))
			break
		}
		v.SetInt(int64(value))
	case string:
		v.Set(reflect.ValueOf(intstr.FromString(value)))
	case time.Duration:
		v.Set(reflect.ValueOf(metav1.Duration{Duration: value}))
	default:
		panic(fmt.Sprintf("%T", value))
	}
	return obj
}

func filled(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

// member returns the field with a JSON name.
func member(v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); tag == name {
			return v.Field(i)
		}
	}
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			return member(v.Field(i), name)
		}
	}
	panic(name)
}

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
		{"an element moved in a list", withoutOld(
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
