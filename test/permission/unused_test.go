package permission

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes"

	"sigs.k8s.io/cluster-api/test/managers"
)

// TestManagersUseWhatTheyAreGranted fails on grants that nobody needs, and on requests that nobody granted.
func TestManagersUseWhatTheyAreGranted(t *testing.T) {
	w := start(t)
	w.walk()
	admin, err := kubernetes.NewForConfig(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	granted := map[string][]managers.Grant{}
	for _, m := range w.managers {
		name := m.connection.User[strings.LastIndex(m.connection.User, ":")+1:]
		if granted[m.Component], err = managers.Grants(t.Context(), admin, m.connection.Namespace, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.stopManagers(); err != nil {
		t.Fatal(err)
	}
	log := readAudit(t, w.AuditLog)
	for _, r := range log.refused {
		t.Errorf("forbidden: %s", r)
	}
	for _, m := range w.managers {
		t.Run(m.Component, func(t *testing.T) {
			used := slices.Collect(maps.Keys(log.used[m.connection.User]))
			t.Logf("%d grants, %d kinds of requests", len(granted[m.Component]), len(used))
			for _, problem := range compare(granted[m.Component], used, unused()[m.Component]) {
				t.Error(problem)
			}
		})
	}
}

// exception is why a grant is kept that the walk does not need.
type exception struct {
	reason string
	// byChance says that the walk may need it or not, depending on who comes first.
	byChance bool
}

// compare holds grants against requests and exceptions, which are listed by the texts of the grants.
func compare(granted, used []managers.Grant, excused map[string]exception) []string {
	needed := map[managers.Grant]bool{}
	for _, request := range used {
		for _, g := range specific(granted, request) {
			needed[g] = true
		}
	}
	var problems []string
	known := map[string]bool{}
	for _, g := range granted {
		known[g.String()] = true
		e, isExcused := excused[g.String()]
		switch {
		case !needed[g] && !isExcused:
			problems = append(problems, "granted and never used: "+g.String())
		case needed[g] && isExcused && !e.byChance:
			problems = append(problems, "used, and listed as not used ("+e.reason+"): "+g.String())
		}
	}
	for _, text := range slices.Sorted(maps.Keys(excused)) {
		if !known[text] {
			problems = append(problems, "listed as not used, and not granted: "+text)
		}
	}
	return problems
}

// unused are the grants that the walk does not use, by component, with the reason for keeping them.
func unused() map[string]map[string]exception {
	const (
		owns  = "an API server with the plugin OwnerReferencesPermissionEnforcement asks for it when an owner is to wait for what it owns"
		pools = "the class of the walk has no MachinePools, others may"
	)
	rotates := exception{reason: "the webhook certificate is renewed after months"}
	repeats := exception{reason: "an event that repeats is counted up", byChance: true}
	conflict := exception{reason: "read past the cache after a conflict, and before what a cache must not mislead", byChance: true}
	lagging := exception{reason: "read past the cache when that does not have it (yet)", byChance: true}
	return map[string]map[string]exception{
		"core": {
			"patch events":   repeats,
			"get secrets":    lagging,
			"create secrets": {reason: "the kubeconfig of a Cluster without a control plane provider"},
			"update secrets capi-system/capi-webhook-service-cert":  rotates,
			"create machinepools.cluster.x-k8s.io":                  {reason: pools},
			"delete machinepools.cluster.x-k8s.io":                  {reason: pools},
			"patch machinepools.cluster.x-k8s.io":                   {reason: pools},
			"update clusters.cluster.x-k8s.io/finalizers":           {reason: owns},
			"update machinedeployments.cluster.x-k8s.io/finalizers": {reason: owns},
			"update machines.cluster.x-k8s.io/finalizers":           {reason: owns},
			"update machinesets.cluster.x-k8s.io/finalizers":        {reason: owns},
		},
		"bootstrap-kubeadm": {
			"patch events":   repeats,
			"delete secrets": {reason: "bootstrap data that was made of what is not true any more, and that nobody has used"},
			"get kubeadmconfigs.bootstrap.cluster.x-k8s.io":               conflict,
			"get machines.cluster.x-k8s.io":                               conflict,
			"get configmaps":                                              conflict,
			"update kubeadmconfigs.bootstrap.cluster.x-k8s.io/finalizers": {reason: owns},
			"update secrets capi-kubeadm-bootstrap-system/capi-kubeadm-bootstrap-webhook-service-cert": rotates,
		},
		"control-plane-kubeadm": {
			"patch events":                                  repeats,
			"get secrets":                                   lagging,
			"get clusters.cluster.x-k8s.io":                 conflict,
			"patch secrets":                                 {reason: "kubeconfigs are renewed after months, certificates that others made are taken over, and those that users brought labelled"},
			"get *.infrastructure.cluster.x-k8s.io":         conflict,
			"get kubeadmconfigs.bootstrap.cluster.x-k8s.io": conflict,
			"delete *.infrastructure.cluster.x-k8s.io":      {reason: "an API server with the plugin OwnerReferencesPermissionEnforcement asks for it when the Cluster becomes an owner of a template"},
			"update kubeadmcontrolplanes.controlplane.cluster.x-k8s.io/finalizers":                             {reason: owns},
			"update machines.cluster.x-k8s.io/finalizers":                                                      {reason: owns},
			"update secrets capi-kubeadm-control-plane-system/capi-kubeadm-control-plane-webhook-service-cert": rotates,
		},
		"infrastructure-in-memory": {
			"patch events": repeats,
			"get inmemoryclusters.infrastructure.cluster.x-k8s.io":   conflict,
			"get inmemorymachines.infrastructure.cluster.x-k8s.io":   conflict,
			"update secrets capim-system/capim-webhook-service-cert": rotates,
		},
	}
}

func TestCompare(t *testing.T) {
	get, list := managers.Grant{Verb: "get", Resource: "nodes"}, managers.Grant{Verb: "list", Resource: "nodes"}
	for _, tc := range []struct {
		reason        string
		granted, used []managers.Grant
		excused       map[string]exception
		want          []string
	}{
		{reason: "all is used", granted: []managers.Grant{get}, used: []managers.Grant{get}},
		{
			reason: "one is not used", granted: []managers.Grant{get, list}, used: []managers.Grant{get},
			want: []string{"granted and never used: list nodes"},
		},
		{
			reason: "one is not used, which is known", granted: []managers.Grant{get, list}, used: []managers.Grant{get},
			excused: map[string]exception{"list nodes": {reason: "why"}},
		},
		{
			reason: "a reason that is not true any more", granted: []managers.Grant{get}, used: []managers.Grant{get},
			excused: map[string]exception{"get nodes": {reason: "why"}},
			want:    []string{"used, and listed as not used (why): get nodes"},
		},
		{
			reason: "what happens by chance may happen", granted: []managers.Grant{get}, used: []managers.Grant{get},
			excused: map[string]exception{"get nodes": {reason: "why", byChance: true}},
		},
		{
			reason: "a reason for what is not granted any more", granted: []managers.Grant{get}, used: []managers.Grant{get},
			excused: map[string]exception{"list nodes": {reason: "why", byChance: true}},
			want:    []string{"listed as not used, and not granted: list nodes"},
		},
	} {
		if diff := cmp.Diff(tc.want, compare(tc.granted, tc.used, tc.excused)); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}
