"""Gap filling: candidates for hidden words, and closer looks below them."""
