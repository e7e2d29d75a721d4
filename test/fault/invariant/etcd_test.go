package invariant

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/members"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

func bootstrapData(name, script string) *unstructured.Unstructured {
	s := object("Secret", name, nil)
	_ = unstructured.SetNestedStringMap(s.Object, map[string]string{
		"format": base64.StdEncoding.EncodeToString([]byte("cloud-config")), "value": base64.StdEncoding.EncodeToString([]byte(script)),
	}, "data")
	return s
}

func controlPlane(names ...string) history.Timeline {
	s := &builder{}
	for _, name := range names {
		m := object("Machine", name, nil)
		m.SetLabels(map[string]string{clusterv1.MachineControlPlaneLabel: "", clusterv1.ClusterNameLabel: scenario.ClusterName})
		s.event(watch.Added, m)
		s.event(watch.Added, bootstrapData(name, "kubeadm join"))
	}
	s.event(watch.Added, bootstrapData(names[0], "kubeadm init"))
	return s.events
}

func TestEtcdRules(t *testing.T) {
	tests := []struct {
		reason  string
		more    *unstructured.Unstructured
		samples []members.Sample
		want    []string
	}{
		{reason: "three members join one after another", samples: []members.Sample{
			{ClusterID: 1, Members: []string{"a"}}, {ClusterID: 1, Members: []string{"a", "b"}}, {ClusterID: 1, Members: []string{"a", "b", "c"}},
		}},
		{reason: "another cluster is initialized", want: []string{"there is only one etcd cluster"}, samples: []members.Sample{
			{ClusterID: 1, Members: []string{"a", "b", "c"}}, {ClusterID: 2, Members: []string{"a", "b", "c"}},
		}},
		{reason: "two Machines are to initialize it", want: []string{"only one Machine initializes the cluster"}, more: bootstrapData("b", "kubeadm init"),
			samples: []members.Sample{{ClusterID: 1, Members: []string{"a", "b", "c"}}}},
		{reason: "one of three machines is deleted before its member is removed", want: []string{"no machine is deleted before its etcd member is removed"}, samples: []members.Sample{
			{ClusterID: 1, Members: []string{"a", "b", "c"}, Gone: []string{"c"}}, {ClusterID: 1, Members: []string{"a", "b", "c"}},
		}},
		{reason: "two of three machines are deleted before their members are removed", want: []string{"no machine is deleted before its etcd member is removed", "etcd always has a quorum"}, samples: []members.Sample{
			{ClusterID: 1, Members: []string{"a", "b", "c"}, Gone: []string{"b", "c"}}, {ClusterID: 1, Members: []string{"a", "b", "c"}},
		}},
		{reason: "the whole control plane is deleted", samples: []members.Sample{
			{ClusterID: 1, Members: []string{"a", "b", "c"}, Gone: []string{"b", "c"}, Over: true}, {ClusterID: 1, Members: []string{"a", "b", "c"}},
		}},
		{reason: "a member has no Machine", want: []string{"finally, etcd has one member for each control plane Machine"}, samples: []members.Sample{
			{ClusterID: 1, Members: []string{"a", "b", "c", "d"}},
		}},
		{reason: "etcd was never reachable", want: []string{"finally, etcd has one member for each control plane Machine"}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			timeline := controlPlane("a", "b", "c")
			if test.more != nil {
				timeline = append(timeline, history.Event{Revision: 100, Type: watch.Added, Object: test.more})
			}
			var broken []string
			for _, v := range Check(Run{Before: timeline, Samples: test.samples}) {
				broken = append(broken, v.Rule)
			}
			if diff := cmp.Diff(test.want, broken); diff != "" {
				t.Errorf("violated rules (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEtcdRulesOfOperations checks what is allowed to a restore and a recovery, and that it is not more.
func TestEtcdRulesOfOperations(t *testing.T) {
	const restores = "kubeadm init, /etc/cluster-api/restore.sh"
	sample := func(id uint64, gone ...string) members.Sample {
		return members.Sample{ClusterID: id, Members: []string{"a", "b", "c"}, Gone: gone}
	}
	tests := []struct {
		reason    string
		scenario  scenario.Scenario
		restorers []string
		dead      string
		samples   []members.Sample
		want      []string
	}{
		{reason: "a restore replaces etcd", scenario: scenario.Scenario{Restores: true}, restorers: []string{"b"},
			samples: []members.Sample{sample(1), sample(2)}},
		{reason: "a restore deletes the machines of the old etcd", scenario: scenario.Scenario{Restores: true}, restorers: []string{"b"},
			samples: []members.Sample{sample(1, "a", "b"), sample(2)}},
		{reason: "the old etcd responds again", scenario: scenario.Scenario{Restores: true}, restorers: []string{"b"},
			samples: []members.Sample{sample(1), sample(2), sample(1)}, want: []string{"there is only one etcd cluster"}},
		{reason: "two Machines restore", scenario: scenario.Scenario{Restores: true}, restorers: []string{"b", "c"},
			samples: []members.Sample{sample(1), sample(2)}, want: []string{"only one Machine initializes the cluster"}},
		{reason: "a Machine restores without a restore", restorers: []string{"b"},
			samples: []members.Sample{sample(1)}, want: []string{"only one Machine initializes the cluster"}},
		{reason: "the machine of a member of the restored etcd is deleted", scenario: scenario.Scenario{Restores: true}, restorers: []string{"b"},
			samples: []members.Sample{sample(1), sample(2, "c"), sample(2)},
			want:    []string{"no machine is deleted before its etcd member is removed"}},
		{reason: "a recovery gives up the members of machines without power", scenario: scenario.Scenario{Recovers: true}, dead: `["a", "b"]`,
			samples: []members.Sample{sample(1, "a", "b"), sample(1)}},
		{reason: "a recovery loses the survivor", scenario: scenario.Scenario{Recovers: true}, dead: `["a", "b"]`,
			samples: []members.Sample{sample(1, "a", "c"), sample(1)},
			want:    []string{"no machine is deleted before its etcd member is removed", "etcd always has a quorum"}},
		{reason: "a recovery makes one new cluster", scenario: scenario.Scenario{Recovers: true}, dead: `["a", "b"]`,
			samples: []members.Sample{sample(1), sample(2)}},
		{reason: "a recovery makes two", scenario: scenario.Scenario{Recovers: true}, dead: `["a", "b"]`,
			samples: []members.Sample{sample(1), sample(2), sample(3)}, want: []string{"there is only one etcd cluster"}},
		{reason: "members of machines without power are given up without a recovery", dead: `["a"]`,
			samples: []members.Sample{sample(1, "a"), sample(1)}, want: []string{"no machine is deleted before its etcd member is removed"}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			timeline := controlPlane("a", "b", "c")
			for _, name := range test.restorers {
				timeline = append(timeline, history.Event{Revision: 100, Type: watch.Added, Object: bootstrapData(name+"-restored", restores)})
			}
			if test.dead != "" {
				infrastructure := object("InMemoryCluster", "c", nil)
				infrastructure.SetAnnotations(map[string]string{inmemoryv1.FaultsAnnotation: `{"deadMachines":` + test.dead + `}`})
				timeline = append(timeline, history.Event{Revision: 101, Type: watch.Added, Object: infrastructure})
			}
			var broken []string
			for _, v := range Check(Run{Scenario: test.scenario, Before: timeline, Samples: test.samples}) {
				broken = append(broken, v.Rule)
			}
			if diff := cmp.Diff(test.want, broken); diff != "" {
				t.Errorf("violated rules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfidentialContentIsFound(t *testing.T) {
	authority, err := pki.NewCA(pki.ECDSA, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.PEM()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := pki.NewKubeconfig("c", "https://h", authority, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	indented := "write_files:\n-   content: |\n      " + strings.ReplaceAll(string(pair.Key), "\n", "\n      ")
	data := map[string][]byte{
		"key": pair.Key, "kubeconfig": kubeconfig, "script": []byte(indented), "join": []byte("token: abcdef.0123456789abcdef\n"), "public": pair.Certificate,
	}
	encoded := map[string]string{}
	for key, raw := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(raw)
	}
	secret := object("Secret", "s", nil)
	_ = unstructured.SetNestedStringMap(secret.Object, encoded, "data")
	needles := Confidential(history.Timeline{{Type: watch.Added, Object: secret}})
	for text, want := range map[string]bool{
		string(pair.Key):                    true,
		encoded["key"]:                      true,
		string(kubeconfig):                  true,
		"the token abcdef.0123456789abcdef": true,
		"the token abcdef":                  false,
		string(pair.Certificate):            false,
		"Created Machine c-abcde":           false,
	} {
		if what, found := Leaked(needles, text); found != want {
			t.Errorf("confidential: %v (%s), want %v, in\n%s", found, what, want, text)
		}
	}
	leak := object("Machine", "m", nil)
	_ = unstructured.SetNestedField(leak.Object, "cannot use abcdef.0123456789abcdef", "status", "failureMessage")
	if broken := noConfidentialContent(Run{Timeline: history.Timeline{{Type: watch.Added, Object: secret}, {Type: watch.Added, Object: leak}}}); len(broken) != 1 {
		t.Errorf("a leak in a status: violations %v, want one", broken)
	}
}
