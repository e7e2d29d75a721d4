package command_test

import (
	"context"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"sigs.k8s.io/cluster-api/standalone/internal/host"
)

// programs are the components that the test binary hosts when it behaves as the program.
func programs() map[string]host.Program { return map[string]host.Program{"panics": panics} }

// panics is a component that copies ConfigMaps of its namespace to names with "-seen", and panics in an event handler over
// one called "poison".
func panics(ctx context.Context, _ []string, p host.Process) error {
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(p.Namespace))
	defer factory.Shutdown()
	copied := make(chan *corev1.ConfigMap, 10)
	_, err = factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		config := o.(*corev1.ConfigMap)
		if config.Name == "poison" {
			panic(config.Name)
		}
		copied <- config
	}})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for {
		select {
		case <-ctx.Done():
			return nil
		case config := <-copied:
			if config.Labels["copy"] == "" {
				continue
			}
			seen := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: config.Name + "-seen"}}
			if _, err := client.CoreV1().ConfigMaps(p.Namespace).Create(ctx, seen, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
	}
}

// install creates the Deployment of the component "panics", in a namespace where it has all permissions.
func install(t *testing.T, admin kubernetes.Interface, namespace string) {
	t.Helper()
	labels := map[string]string{"app": "panics"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "panics", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: "panics",
				Containers:         []corev1.Container{{Name: "manager", Image: "registry.example/panics:v1"}},
			}},
		},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "panics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "panics"}},
	}
	_, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err == nil {
		_, err = admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "panics"}}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = admin.AppsV1().Deployments(namespace).Create(t.Context(), deployment, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A panic of one component over one event costs that event, not the API server, the other components, nor the next event.
func TestAPanicInAnEventHandlerIsContained(t *testing.T) {
	t.Parallel()
	const namespace = "panics"
	dir := t.TempDir()
	serve(t, "--data-dir", dir, "--unsafe-no-fsync")
	admin := client(t, filepath.Join(dir, "kubeconfig"))
	install(t, admin, namespace)
	for _, name := range []string{"poison", "next"} {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"copy": "true"}}}
		if _, err := admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if name == "poison" { // The component is running, and has handled it, once the next object is copied.
			continue
		}
		waitFor(t, "the copy of the object after the poison", func() bool {
			_, err := admin.CoreV1().ConfigMaps(namespace).Get(t.Context(), name+"-seen", metav1.GetOptions{})
			return err == nil
		})
	}
}
