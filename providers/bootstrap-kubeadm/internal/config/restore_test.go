package config

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/flatcar/ignition/config/v2_3"
	"github.com/google/go-cmp/cmp"
	"github.com/vincent-petithory/dataurl"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// restoringConfig is the config of a Machine that restores the data of Secret data.
func restoringConfig(name string, spec bootstrapv1.KubeadmConfigSpec) *bootstrapv1.KubeadmConfig {
	config := newConfig(name, spec)
	config.Annotations = map[string]string{fleetv1.RestoreDataAnnotation: "data"}
	return config
}

// restoreData is the Secret.
func restoreData() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: build.Meta("Secret", "data"), Data: map[string][]byte{
		fleetv1.RestoreScriptKey: []byte("#!/bin/sh\nexit 7\n"), fleetv1.RestoreConfigKey: []byte(`{"key": "hidden"}`),
	}}
}

// commandsOf is a spec with commands.
func commandsOf(ignored ...string) bootstrapv1.KubeadmConfigSpec {
	spec := clusterSpec()
	spec.PreKubeadmCommands, spec.PostKubeadmCommands = []string{"before"}, []string{"after"}
	spec.InitConfiguration.NodeRegistration.IgnorePreflightErrors = ignored
	return spec
}

const (
	runsScript = "{ mv -f /run/kubeadm/kubeadm.yaml /run/kubeadm/kubeadm.yaml.restoring || test -e /run/kubeadm/kubeadm.yaml.restoring; } && " +
		"/bin/sh /etc/cluster-api/restore.sh && mv /run/kubeadm/kubeadm.yaml.restoring /run/kubeadm/kubeadm.yaml || exit 1"
	runsInit = "kubeadm init --config /run/kubeadm/kubeadm.yaml && echo success > /run/cluster-api/bootstrap-success.complete"
)

// The cluster is initialized, and the lock of an earlier Machine, which may exist, is left.
func TestRestore(t *testing.T) {
	custom := commandsOf()
	custom.ClusterConfiguration.Etcd.Local.DataDir = "/data/it's etcd"
	tests := []struct {
		reason          string
		spec            bootstrapv1.KubeadmConfigSpec
		script, ignores string
	}{
		{reason: "the usual directory", spec: commandsOf("Swap"), script: runsScript, ignores: "  - Swap\n  - DirAvailable--var-lib-etcd\n"},
		{reason: "all checks are ignored already", spec: commandsOf("all"), script: runsScript, ignores: "  - all\n"},
		{reason: "another directory", spec: custom, script: strings.Replace(runsScript, ".sh &&", `.sh '/data/it'\''s etcd' &&`, 1),
			ignores: "  - DirAvailable--data-it's etcd\n"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, initialized(newCluster()), newMachine("m", true), newMachine("other", true), lockOf("cluster-test", "other"),
				restoringConfig("m", tt.spec), restoreData(), testCA(t))
			before := w.config(t, "m")
			w.mustReconcile(t, "m")
			config, d := w.config(t, "m"), w.document(t, "m")
			if !ptr.Deref(config.Status.Initialization.DataSecretCreated, false) || !cmp.Equal(before.Spec, config.Spec) {
				t.Fatalf("no data, or the spec has changed: %+v", config)
			}
			if diff := cmp.Diff([]string{"before", tt.script, runsInit, "after"}, d.Commands); diff != "" {
				t.Errorf("commands, -want +got:\n%s", diff)
			}
			for _, want := range []string{"/etc/cluster-api/restore.sh 0700 root:root", "/etc/cluster-api/restore.json 0600 root:root",
				"/run/kubeadm/kubeadm.yaml 0640 root:root"} {
				if !slices.Contains(d.paths(), want) {
					t.Errorf("files %q lack %q", d.paths(), want)
				}
			}
			if text := d.file("/run/kubeadm/kubeadm.yaml"); !strings.Contains(text, "ignorePreflightErrors:\n"+tt.ignores) ||
				strings.Contains(text, "all\n  - Dir") {
				t.Errorf("kubeadm's configuration:\n%s", text)
			}
			if d.file(fleetv1.RestoreScriptPath) != "#!/bin/sh\nexit 7\n" {
				t.Errorf("script %q", d.file(fleetv1.RestoreScriptPath))
			}
			if lock := w.lockSays(t); lock != `{"machineName":"other"}` || len(w.workload.Requests) != 0 {
				t.Errorf("the lock contains %q, %d requests to the workload cluster; want the lock as it was, and none", lock, len(w.workload.Requests))
			}
			for range 2 {
				if result := w.mustReconcile(t, "m"); result.RequeueAfter != 0 || len(w.workload.Requests) != 0 {
					t.Errorf("with data: again after %s, %d requests for a token", result.RequeueAfter, len(w.workload.Requests))
				}
			}
		})
	}
}

func TestRestoreInIgnition(t *testing.T) {
	spec := commandsOf()
	spec.Format = bootstrapv1.Ignition
	w := newWorld(t, initialized(newCluster()), newMachine("m", true), restoringConfig("m", spec), restoreData(), testCA(t))
	w.c.ignition = true
	w.mustReconcile(t, "m")
	config, report, err := v2_3.Parse(get(t, w, "m", &corev1.Secret{}).Data["value"])
	if err != nil || report.IsFatal() {
		t.Fatalf("%v, %s", err, report.String())
	}
	files := map[string]string{}
	for _, f := range config.Storage.Files {
		content, err := dataurl.DecodeString(f.Contents.Source)
		testenv.Must(t, err)
		files[f.Path] = string(content.Data)
		if f.Path == fleetv1.RestoreConfigPath && *f.Mode != 0o600 {
			t.Errorf("mode %o of %s", *f.Mode, f.Path)
		}
	}
	if script := files["/etc/kubeadm.sh"]; !strings.Contains(script, "'\n/bin/sh /etc/cluster-api/restore.sh || exit 1\nkubeadm init") {
		t.Errorf("script:\n%s", script)
	}
	if files[fleetv1.RestoreScriptPath] == "" || !json.Valid([]byte(files[fleetv1.RestoreConfigPath])) ||
		!strings.Contains(files["/etc/kubeadm.yml"], "DirAvailable--var-lib-etcd") {
		t.Errorf("files %q", files)
	}
}

func TestRestoreWaitsForItsData(t *testing.T) {
	empty := restoreData()
	delete(empty.Data, fleetv1.RestoreConfigKey)
	for _, tt := range []struct {
		reason, want string
		objects      []client.Object
	}{
		{reason: "no Secret", want: "Waiting for Secret default/data with the data to restore, which annotation fleet.cluster.x-k8s.io/restore-data names"},
		{reason: "no key", want: `Waiting for key "restore.json" of Secret default/data`, objects: []client.Object{empty}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, append(tt.objects, initialized(newCluster()), newMachine("m", true), restoringConfig("m", clusterSpec()), testCA(t))...)
			result := w.mustReconcile(t, "m")
			c := condition.Get(w.config(t, "m"), bootstrapv1.DataSecretAvailableV1Beta1Condition)
			if result.RequeueAfter != backstop || !strings.HasPrefix(c.Message, tt.want) || c.Reason != bootstrapv1.DataSecretGenerationFailedV1Beta1Reason {
				t.Errorf("again after %s, condition %+v, want %q", result.RequeueAfter, c, tt.want)
			}
			if len(w.created(t)) != 0 {
				t.Errorf("created %q", w.created(t))
			}
		})
	}
}

// The annotation means nothing on the config of a worker. In a cluster that has not been initialized, one Machine at a time gets the lock.
func TestRestoreElsewhere(t *testing.T) {
	w := newWorld(t, initialized(newCluster()), newMachine("m", false), restoringConfig("m", clusterSpec()), restoreData(), testCA(t))
	w.mustReconcile(t, "m")
	if commands := w.document(t, "m").Commands; len(commands) != 1 || !strings.HasPrefix(commands[0], "kubeadm join") {
		t.Errorf("a worker runs %q", commands)
	}
	w = newWorld(t, newCluster(), newMachine("m", true), restoringConfig("m", clusterSpec()), restoreData(), testCA(t))
	w.mustReconcile(t, "m")
	if commands := w.document(t, "m").Commands; len(commands) != 2 || commands[0] != runsScript || w.lockSays(t) != `{"machineName":"m"}` {
		t.Errorf("in a new cluster, it runs %q, and the lock contains %q", commands, w.lockSays(t))
	}
}

// TestRestoreWhereverItIsKilled kills the manager at each of its writes.
func TestRestoreWhereverItIsKilled(t *testing.T) {
	for n := 0; ; n++ {
		w := newWorld(t, initialized(newCluster()), newMachine("m", true), restoringConfig("m", clusterSpec()), restoreData(), testCA(t))
		writes := 0
		w.After = func(_ fakeapi.Request, err error) error {
			if writes++; writes > n {
				return errors.New("killed")
			}
			return err
		}
		_, _ = w.reconcile(t, "m")
		w.After = nil
		w.restart()
		w.mustReconcile(t, "m")
		if config := w.config(t, "m"); config.Status.DataSecretName != "m" || w.document(t, "m").Commands[0] != runsScript ||
			!condition.IsTrue(config, clusterv1.ReadyV1Beta1Condition) {
			t.Fatalf("killed at write %d: %+v", n, config.Status)
		}
		if writes <= n {
			return
		}
	}
}
