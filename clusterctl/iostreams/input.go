package iostreams

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Input reads a file, or the standard input if its name is "-".
func (s *Streams) Input(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(s.In)
	}
	return os.ReadFile(name)
}

// Ask asks users to type a word, and returns an error if they type another. without says which flags answer without a terminal.
func (s *Streams) Ask(question, word, without string) error {
	fmt.Fprintf(s.Err, "%s\nType %s to go on: ", question, word)
	line, err := bufio.NewReader(s.In).ReadString('\n')
	if strings.TrimSpace(line) == word {
		return nil
	}
	if err != nil && strings.TrimSpace(line) == "" {
		return fmt.Errorf("nothing is changed: there is no answer; use %s without a terminal", without)
	}
	return errors.New("nothing is changed")
}
