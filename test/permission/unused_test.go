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

// TestManagersUseTheirPermissions fails for permissions that are not needed, and for forbidden requests.
func TestManagersUseTheirPermissions(t *testing.T) {
	t.Parallel()
	w := start(t, managers.Programs()...)
	w.walk()
	w.compare()
}

// compare compares the permissions of all managers with their requests, after they are stopped.
func (w *world) compare() {
	t := w.t
	t.Helper()
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
	for _, r := range log.forbidden {
		t.Errorf("forbidden request: %s", r)
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

// exception justifies a grant that the walk does not need.
type exception struct {
	reason string
	// byChance is set if the walk may need it, depending on timing.
	byChance bool
}

// compare compares grants with requests and exceptions. The keys of exceptions are the texts of grants.
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
			problems = append(problems, "granted, but not used: "+g.String())
		case needed[g] && isExcused && !e.byChance:
			problems = append(problems, "used, but listed as unused ("+e.reason+"): "+g.String())
		}
	}
	for _, text := range slices.Sorted(maps.Keys(excused)) {
		if !known[text] {
			problems = append(problems, "listed as unused, but not granted: "+text)
		}
	}
	return problems
}

// unused returns the grants that the walk does not use, by component, with the reasons.
func unused() map[string]map[string]exception {
	const (
		owns = "required for owner references with blockOwnerDeletion by the admission plugin OwnerReferencesPermissionEnforcement"
		// A cache that starts with the first IPAddress.
		addresses = "the walk has no IPAddresses"
	)
	rotates := exception{reason: "renewal of the webhook certificate, after months"}
	repeats := exception{reason: "repeated events are counted", byChance: true}
	conflict := exception{reason: "live reads after a conflict, and before actions that must not depend on a stale cache", byChance: true}
	lagging := exception{reason: "live reads if the object is not in the cache (yet)", byChance: true}
	all := map[string]map[string]exception{
		"core": {
			"patch events":   repeats,
			"get secrets":    lagging,
			"create secrets": {reason: "the kubeconfig of a Cluster without a control plane provider"},
			"get extensionconfigs.runtime.cluster.x-k8s.io":          conflict,
			"get clusterresourcesetbindings.addons.cluster.x-k8s.io": conflict,
			"update secrets capi-system/capi-webhook-service-cert":   rotates,
			"update machinepools.cluster.x-k8s.io/finalizers":        {reason: owns},
			"update clusters.cluster.x-k8s.io/finalizers":            {reason: owns},
			"update machinedeployments.cluster.x-k8s.io/finalizers":  {reason: owns},
			"update machines.cluster.x-k8s.io/finalizers":            {reason: owns},
			"update machinesets.cluster.x-k8s.io/finalizers":         {reason: owns},
			"patch ipaddressclaims.ipam.cluster.x-k8s.io":            {reason: addresses},
			"patch ipaddresses.ipam.cluster.x-k8s.io":                {reason: addresses},
			"patch machinedrainrules.cluster.x-k8s.io":               {reason: "the walk has no MachineDrainRules to migrate"},
			"watch ipaddressclaims.ipam.cluster.x-k8s.io":            {reason: addresses},
		},
		"bootstrap-kubeadm": {
			"patch events":   repeats,
			"delete secrets": {reason: "outdated bootstrap data that is not in use"},
			"update secrets": {reason: "bootstrap data of MachinePools with a new token, after minutes"},
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
			"patch secrets":                                 {reason: "renewal of kubeconfigs, after months; existing certificates are adopted, and those of users labeled"},
			"get *.infrastructure.cluster.x-k8s.io":         conflict,
			"get kubeadmconfigs.bootstrap.cluster.x-k8s.io": conflict,
			"delete *.infrastructure.cluster.x-k8s.io":      {reason: "required for the Cluster's owner reference on templates by the admission plugin OwnerReferencesPermissionEnforcement"},
			"update kubeadmcontrolplanes.controlplane.cluster.x-k8s.io/finalizers":                             {reason: owns},
			"update machines.cluster.x-k8s.io/finalizers":                                                      {reason: owns},
			"update secrets capi-kubeadm-control-plane-system/capi-kubeadm-control-plane-webhook-service-cert": rotates,
		},
		"infrastructure-in-memory": {
			"patch events": repeats,
			"get inmemoryclusters.infrastructure.cluster.x-k8s.io":    conflict,
			"get inmemorymachines.infrastructure.cluster.x-k8s.io":    conflict,
			"delete inmemorymachines.infrastructure.cluster.x-k8s.io": {reason: "machines of pools without a Machine", byChance: true},
			"patch machinepools.cluster.x-k8s.io":                     {reason: "replicas that the simulated cloud decides on"},
			"update secrets capim-system/capim-webhook-service-cert":  rotates,
		},
		"ipam-in-cluster": {
			"patch events":                                                                         repeats,
			"get ipaddresses.ipam.cluster.x-k8s.io":                                                conflict,
			"get ipaddressclaims.ipam.cluster.x-k8s.io":                                            conflict,
			"get inclusterippools.ipam.cluster.x-k8s.io":                                           conflict,
			"get globalinclusterippools.ipam.cluster.x-k8s.io":                                     conflict,
			"update ipaddressclaims.ipam.cluster.x-k8s.io/finalizers":                              {reason: owns},
			"update secrets capi-ipam-in-cluster-system/capi-ipam-in-cluster-webhook-service-cert": rotates,
		},
		"fleet": {
			"patch events": repeats,
			"create etcdbackups.fleet.cluster.x-k8s.io":     {reason: "what a policy makes is due a minute after its creation at the earliest: see TestBackupPolicy"},
			"delete etcdbackups.fleet.cluster.x-k8s.io":     {reason: "retention of a policy: see TestBackupPolicy"},
			"get etcdbackups.fleet.cluster.x-k8s.io":        conflict,
			"get etcdbackuppolicies.fleet.cluster.x-k8s.io": conflict,
			"get backupstores.fleet.cluster.x-k8s.io":       conflict,
			"get clusters.cluster.x-k8s.io":                 conflict,
			"patch secrets":                                 {reason: "a restore that is repeated after an interruption, or whose URL is renewed", byChance: true},
		},
		"runtime-extension-test": {
			"update secrets test-extension-system/test-extension-webhook-service-cert": rotates,
		},
		"infrastructure-docker": unusedByDocker(rotates, repeats, conflict),
	}
	return all
}

func unusedByDocker(rotates, repeats, conflict exception) map[string]exception {
	dockerPools := exception{reason: "the walk of the Docker provider has no MachinePools", byChance: true}
	templates := exception{reason: "the walk of the Docker provider has no templates to migrate", byChance: true}
	return map[string]exception{
		"patch events":                                                     repeats,
		"get clusters.cluster.x-k8s.io":                                    dockerPools,
		"get machinepools.cluster.x-k8s.io":                                dockerPools,
		"get devclusters.infrastructure.cluster.x-k8s.io":                  conflict,
		"get devmachines.infrastructure.cluster.x-k8s.io":                  conflict,
		"get devmachinepools.infrastructure.cluster.x-k8s.io":              conflict,
		"create devmachines.infrastructure.cluster.x-k8s.io":               dockerPools,
		"delete devmachines.infrastructure.cluster.x-k8s.io":               dockerPools,
		"list devmachinepools.infrastructure.cluster.x-k8s.io":             dockerPools,
		"watch devmachinepools.infrastructure.cluster.x-k8s.io":            dockerPools,
		"patch devmachinepools.infrastructure.cluster.x-k8s.io":            dockerPools,
		"patch devmachinepools.infrastructure.cluster.x-k8s.io/status":     dockerPools,
		"get dockerclusters.infrastructure.cluster.x-k8s.io":               conflict,
		"get dockermachines.infrastructure.cluster.x-k8s.io":               conflict,
		"get dockermachinepools.infrastructure.cluster.x-k8s.io":           conflict,
		"list machinepools.cluster.x-k8s.io":                               dockerPools,
		"watch machinepools.cluster.x-k8s.io":                              dockerPools,
		"delete machines.cluster.x-k8s.io":                                 dockerPools,
		"create dockermachines.infrastructure.cluster.x-k8s.io":            dockerPools,
		"delete dockermachines.infrastructure.cluster.x-k8s.io":            dockerPools,
		"list dockermachinepools.infrastructure.cluster.x-k8s.io":          dockerPools,
		"watch dockermachinepools.infrastructure.cluster.x-k8s.io":         dockerPools,
		"patch dockermachinepools.infrastructure.cluster.x-k8s.io":         dockerPools,
		"patch dockermachinepools.infrastructure.cluster.x-k8s.io/status":  dockerPools,
		"patch devclustertemplates.infrastructure.cluster.x-k8s.io":        templates,
		"patch devmachinetemplates.infrastructure.cluster.x-k8s.io":        templates,
		"patch devmachinepooltemplates.infrastructure.cluster.x-k8s.io":    templates,
		"patch dockerclustertemplates.infrastructure.cluster.x-k8s.io":     templates,
		"patch dockermachinetemplates.infrastructure.cluster.x-k8s.io":     templates,
		"patch dockermachinepooltemplates.infrastructure.cluster.x-k8s.io": templates,
		"update secrets capd-system/capd-webhook-service-cert":             rotates,
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
		{reason: "all grants are used", granted: []managers.Grant{get}, used: []managers.Grant{get}},
		{
			reason: "an unused grant", granted: []managers.Grant{get, list}, used: []managers.Grant{get},
			want: []string{"granted, but not used: list nodes"},
		},
		{
			reason: "an unused grant with a reason", granted: []managers.Grant{get, list}, used: []managers.Grant{get},
			excused: map[string]exception{"list nodes": {reason: "why"}},
		},
		{
			reason: "a reason for a grant that is used", granted: []managers.Grant{get}, used: []managers.Grant{get},
			excused: map[string]exception{"get nodes": {reason: "why"}},
			want:    []string{"used, but listed as unused (why): get nodes"},
		},
		{
			reason: "a reason for a grant that may be used by chance", granted: []managers.Grant{get}, used: []managers.Grant{get},
			excused: map[string]exception{"get nodes": {reason: "why", byChance: true}},
		},
		{
			reason: "a reason for a grant that does not exist", granted: []managers.Grant{get}, used: []managers.Grant{get},
			excused: map[string]exception{"list nodes": {reason: "why", byChance: true}},
			want:    []string{"listed as unused, but not granted: list nodes"},
		},
	} {
		if diff := cmp.Diff(tc.want, compare(tc.granted, tc.used, tc.excused)); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}
