"""Do the tests notice? Random changes of one token, each judged by the module's own tests."""
