import { render } from 'preact';
import './styles/tokens.css';
import './styles/base.css';
import { App } from './shell/app.js';

const page = document.getElementById('page');
if (page !== null) render(<App />, page);
