package command

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/sdk/version"
)

var url = regexp.MustCompile(`^The book of v2\.0\.0 is at (http://127\.0\.0\.1:\d+) \(end with Ctrl\+C\)\n$`)

// execute runs the command with arguments.
func execute(ctx context.Context, out io.Writer, args ...string) error {
	cmd := New("clusterctl docs", version.Info{GitVersion: "v2.0.0"}, nil, nil)
	cmd.SetOut(out)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(ctx)
}

// TestServe reads the book at the printed URL, and ends the command.
func TestServe(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := execute(ctx, writer)
		writer.CloseWithError(err)
		ended <- err
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	match := url.FindStringSubmatch(line)
	if match == nil {
		t.Fatalf("it printed %q, %v", line, err)
	}
	for path, want := range map[string]string{
		"/": "<h1 id=\"the-book\">", "/concepts.html": "<title>Concepts · Cluster API v2.0.0</title>", "/search.js": "manualIndex = {",
	} {
		if body := get(t, match[1]+path); !strings.Contains(body, want) {
			t.Errorf("%s has no %s", path, want)
		}
	}
	err = execute(t.Context(), io.Discard, "--address", strings.TrimPrefix(match[1], "http://"))
	if err == nil || !strings.Contains(err.Error(), "address already in use: set another one") {
		t.Errorf("an address that is in use: got %v", err)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("an interrupt is no error, got %v", err)
	}
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(match[1], "http://"))
	if err == nil {
		connection.Close()
		t.Error("the address is still served")
	}
}

// get returns the body of a response.
func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, response.Status, err)
	}
	return string(body)
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "book")
	var out bytes.Buffer
	if err := execute(t.Context(), &out, "--output-dir", dir); err != nil {
		t.Fatal(err)
	}
	if want := "The book of v2.0.0 is in " + dir + ": open " + filepath.Join(dir, "index.html") + " in a browser\n"; out.String() != want {
		t.Errorf("it printed %q, want %q", out.String(), want)
	}
	for _, name := range []string{"index.html", "concepts.html", "manual.css", "manual.js", "search.js"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"an address without port", []string{"--address", "localhost"}, `--address is "localhost": it must be HOST:PORT, such as 127.0.0.1:8000`},
		{"a port that does not exist", []string{"--address", "127.0.0.1:99999"}, "--address: cannot listen tcp: address 99999: invalid port: set another one"},
		{"both", []string{"--address", "127.0.0.1:0", "--output-dir", "x"}, "--address and --output-dir exclude each other"},
		{"a directory that is a file", []string{"--output-dir", file}, "--output-dir: creating the directory of the site: mkdir "},
		{"an argument", []string{"upgrade"}, `unknown command "upgrade" for "docs"`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			err := execute(t.Context(), io.Discard, tc.args...)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
