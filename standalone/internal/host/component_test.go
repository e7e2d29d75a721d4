package host_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"

	"sigs.k8s.io/cluster-api/standalone/internal/host"
)

// testComponent is a small provider component. It writes what it was given into a ConfigMap "seen", serves readiness
// and a webhook that denies everything, writes its name into a ConfigMap "leader" when it leads, and ends with its context.
// Arguments:
//
//	--fail=TEXT    fail immediately with that text
//	--tell=TEXT    write TEXT into "seen"
//	--name=NAME    the name in the webhook's answer instead of test-component
//	--never-ready  fail the readiness probe
func testComponent(ctx context.Context, args []string, p host.Process) error {
	for _, arg := range args {
		if text, found := strings.CutPrefix(arg, "--fail="); found {
			return errors.New(text)
		}
	}
	client, err := kubernetes.NewForConfig(p.Config)
	if err != nil {
		return err
	}
	if err := tell(ctx, client, args, p); err != nil {
		return err
	}
	served := sync.WaitGroup{}
	name := named(args)
	health := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if slices.Contains(args, "--never-ready") {
			http.Error(w, name+" is not ready", http.StatusInternalServerError)
		}
	})}
	webhook := &http.Server{Handler: deny(name)}
	for port, server := range map[string]*http.Server{"healthz": health, "webhook-server": webhook} {
		listener, err := p.Listen(port)
		if err != nil {
			return err
		}
		if server == webhook {
			serving, err := certificate(p)
			if err != nil {
				return err
			}
			listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{serving}})
		}
		served.Go(func() { _ = server.Serve(listener) })
	}
	if err := p.Lead(ctx); err == nil {
		leader := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "leader"}, Data: map[string]string{"name": name}}
		if err := put(ctx, client, p.Namespace, leader); err != nil {
			return err
		}
	}
	<-ctx.Done()
	_ = health.Close()
	_ = webhook.Close()
	served.Wait()
	shared.endedOf(p.Namespace) <- p.Namespace
	return nil
}

// tell records what the component sees.
func tell(ctx context.Context, client kubernetes.Interface, args []string, p host.Process) error {
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, secrets := client.CoreV1().Secrets(p.Namespace).List(ctx, metav1.ListOptions{})
	seen := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "seen"},
		Data: map[string]string{
			"args":      strings.Join(args, " "),
			"namespace": p.Namespace,
			"dataDir":   p.DataDir,
			"podIP":     p.Getenv("POD_IP"),
			"greeting":  p.Getenv("GREETING"),
			"optional":  p.Getenv("OPTIONAL"),
			"user":      who.Status.UserInfo.Username,
			"groups":    strings.Join(slices.Sorted(slices.Values(who.Status.UserInfo.Groups)), " "),
			"secrets":   fmt.Sprint(secrets),
		},
	}
	return put(ctx, client, p.Namespace, seen)
}

// put creates or updates a ConfigMap.
func put(ctx context.Context, client kubernetes.Interface, namespace string, m *corev1.ConfigMap) error {
	_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, m, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = client.CoreV1().ConfigMaps(namespace).Update(ctx, m, metav1.UpdateOptions{})
	}
	return err
}

// named returns the component's name from its arguments.
func named(args []string) string {
	for _, arg := range args {
		if name, found := strings.CutPrefix(arg, "--name="); found {
			return name
		}
	}
	return "test-component"
}

// certificate reads the webhook's certificate from the environment, which has it from a Secret.
func certificate(p host.Process) (tls.Certificate, error) {
	return tls.X509KeyPair([]byte(p.Getenv("TLS_CERT")), []byte(p.Getenv("TLS_KEY")))
}

// issue issues a self-signed certificate for the Service "webhook" of a namespace.
func issue(namespace string) (certPEM, keyPEM []byte, err error) {
	return cert.GenerateSelfSignedCertKey("webhook."+namespace+".svc", nil, nil)
}

// deny is a webhook that denies everything, naming what it was asked.
func deny(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		review := &admissionv1.AdmissionReview{}
		if err == nil {
			err = json.Unmarshal(body, review)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Result: &metav1.Status{Message: name + " does not want " + review.Request.Name},
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}
}
